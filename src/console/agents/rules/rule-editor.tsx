import { useRef } from 'preact/hooks'
import { policyActions } from '../../../auth/row-policy.js'
import { escapeUnseen } from '../../../auth/shown-text.js'
import { type ConditionDraft, emptyCondition } from '../records/filter.js'
import { Field } from '../../parts/field.js'
import { Quoted } from '../../parts/texts.js'
import { Condition } from '../records/filter-form.js'
import {
  draftsOf,
  type EditedRules,
  newRule,
  type RuleDraft,
  rulesOfDrafts,
  rulesOfText,
  textOfRules,
} from './draft.js'
import { actionMeanings } from './words.js'

/** The most that the server takes. */
const RULES_MAX = 64
const CONDITIONS_MAX = 32

/** What the value of a condition can name instead of a literal. */
const claims = [
  '$jwt.sub',
  '$jwt.email',
  '$jwt.verified_email',
  '$jwt.app_metadata.team',
  '$jwt.user_metadata.team',
]
const CLAIMS_ID = 'rule-claims'

/** Rules as rows, and beside them as JSON. */
export function RuleEditor({ edited, set }: { edited: EditedRules; set: (edited: EditedRules) => void }) {
  const { drafts, text, read, by } = edited
  const isFaulty = 'fault' in read
  const setDrafts = (next: RuleDraft[]): void => {
    const made = rulesOfDrafts(next)
    const shown = 'policies' in made ? textOfRules(made.policies) : text
    set({ drafts: next, text: shown, read: made, by: 'rows' })
  }
  const setText = (next: string): void => {
    const made = rulesOfText(next)
    set({
      drafts: 'policies' in made ? draftsOf(made.policies) : drafts,
      text: next,
      read: made,
      by: 'text',
    })
  }
  const addButton = useRef<HTMLButtonElement>(null)
  const setRule = (at: number, rule: RuleDraft | undefined): void => {
    // The button that was pressed goes with the rule.
    if (rule === undefined) addButton.current?.focus()
    setDrafts(drafts.flatMap((one, index) => (index !== at ? [one] : rule === undefined ? [] : [rule])))
  }
  return (
    <div class="rule-editor">
      <fieldset class="rule-rows" disabled={isFaulty && by === 'text'}>
        <legend>Rules</legend>
        {drafts.length === 0 && (
          <p class="muted">No rule yet: users reach nothing of this agent. Add one to let them.</p>
        )}
        {drafts.map((rule, at) => (
          // Rules have no identity but their place.
          <Rule key={at} number={at + 1} rule={rule} set={(changed) => setRule(at, changed)} />
        ))}
        <div class="buttons">
          <button
            ref={addButton}
            type="button"
            disabled={drafts.length >= RULES_MAX}
            onClick={() => setDrafts([...drafts, newRule])}
          >
            Add a rule
          </button>
        </div>
      </fieldset>
      <div class="rule-text">
        <label for="rules-json">The same as JSON</label>
        <textarea
          id="rules-json"
          rows={16}
          spellcheck={false}
          value={text}
          readOnly={isFaulty && by === 'rows'}
          aria-invalid={isFaulty && by === 'text'}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <datalist id={CLAIMS_ID}>
        {claims.map((claim) => (
          <option key={claim} value={claim} />
        ))}
      </datalist>
    </div>
  )
}

/** Shows what a field of a form does not: characters that are not seen. */
function Unseen({ field, value }: ConditionDraft) {
  if (escapeUnseen(field + value) === field + value) return null
  return (
    <p class="problem">
      There are characters that are not seen: <Quoted value={field} /> <Quoted value={value} />
    </p>
  )
}

function Rule(props: { number: number; rule: RuleDraft; set: (rule: RuleDraft | undefined) => void }) {
  const { number, rule, set } = props
  const { actions, conditions, types } = rule
  const addButton = useRef<HTMLButtonElement>(null)
  const setCondition = (at: number, changed: ConditionDraft | undefined): void => {
    if (changed === undefined) addButton.current?.focus()
    const next = conditions.flatMap((one, index) =>
      index !== at ? [one] : changed === undefined ? [] : [changed],
    )
    set({ ...rule, conditions: next })
  }
  return (
    <fieldset class="rule">
      <legend>Rule {number}: users may</legend>
      <div class="rule-actions">
        {policyActions.map((action) => (
          <label key={action} class="choice" title={actionMeanings[action]}>
            <input
              type="checkbox"
              checked={actions.includes(action)}
              onChange={({ currentTarget: { checked } }) =>
                set({
                  ...rule,
                  actions: policyActions.filter((one) => (one === action ? checked : actions.includes(one))),
                })
              }
            />
            {action}
          </label>
        ))}
      </div>
      <p class="muted">{conditions.length === 0 ? 'every record' : 'records of which all of this holds:'}</p>
      {conditions.map((condition, at) => (
        <div key={at}>
          <Condition condition={condition} values={CLAIMS_ID} set={(changed) => setCondition(at, changed)} />
          <Unseen {...condition} />
        </div>
      ))}
      <Field
        name="Of these types"
        placeholder="all that applications write; sys/*, auth/* and edge/* only where named"
        value={types}
        set={(typed) => set({ ...rule, types: typed })}
      />
      <div class="buttons">
        <button
          ref={addButton}
          type="button"
          disabled={conditions.length >= CONDITIONS_MAX}
          onClick={() => set({ ...rule, conditions: [...conditions, emptyCondition] })}
        >
          Add a condition
        </button>
        <button type="button" class="quiet" onClick={() => set(undefined)}>
          Remove rule {number}
        </button>
      </div>
    </fieldset>
  )
}
