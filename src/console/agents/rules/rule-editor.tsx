import { useRef } from 'preact/hooks'
import { policyActions } from '../../../auth/row-policy.js'
import { escapeUnseen } from '../../../auth/shown-text.js'
import { type ConditionDraft, emptyCondition } from '../records/filter.js'
import { Field } from '../../parts/field.js'
import { Button, Quoted } from '../../parts/texts.js'
import { Condition } from '../records/filter-form.js'
import {
  draftsOf,
  type EditedRules,
  newRule,
  type RuleDraft,
  rulesOfDrafts,
  rulesOfText,
  textOfRules,
  ruleComparisons,
} from './draft.js'
import { actionMeanings } from './labels.js'

/** The server's limits. */
const RULES_MAX = 64
const CONDITIONS_MAX = 32

/** Suggested claims for the value of a condition. */
const claims = [
  '$jwt.sub',
  '$jwt.email',
  '$jwt.verified_email',
  '$jwt.app_metadata.team',
  '$jwt.user_metadata.team',
]
const CLAIMS_ID = 'rule-claims'

/** Edits rules as rows or as JSON. */
export function RuleEditor({ edited, set }: { edited: EditedRules; set: (edited: EditedRules) => void }) {
  const { drafts, text, read, by } = edited
  const isFaulty = 'fault' in read
  const setDrafts = (next: RuleDraft[]): void => {
    const parsed = rulesOfDrafts(next)
    const shown = 'policies' in parsed ? textOfRules(parsed.policies) : text
    set({ drafts: next, text: shown, read: parsed, by: 'rows' })
  }
  const setText = (next: string): void => {
    const parsed = rulesOfText(next)
    set({
      drafts: 'policies' in parsed ? draftsOf(parsed.policies) : drafts,
      text: next,
      read: parsed,
      by: 'text',
    })
  }
  const addButton = useRef<HTMLButtonElement>(null)
  const setRule = (at: number, rule: RuleDraft | undefined): void => {
    // The button that has the focus is removed together with the rule.
    if (rule === undefined) addButton.current?.focus()
    setDrafts(drafts.flatMap((one, index) => (index !== at ? [one] : rule === undefined ? [] : [rule])))
  }
  return (
    <div class="rule-editor">
      <fieldset class="rule-rows" disabled={isFaulty && by === 'text'}>
        <legend>Rules</legend>
        {drafts.length === 0 && (
          <p class="muted">No rules yet: users cannot access this agent. Add a rule to grant access.</p>
        )}
        {drafts.map((rule, at) => (
          // Rules have no identity but their position.
          <Rule key={at} number={at + 1} rule={rule} set={(changed) => setRule(at, changed)} />
        ))}
        <div class="buttons">
          <button
            ref={addButton}
            type="button"
            disabled={drafts.length >= RULES_MAX}
            onClick={() => setDrafts([...drafts, newRule])}
          >
            Add rule
          </button>
        </div>
      </fieldset>
      <div class="rule-text">
        <label for="rules-json">Rules as JSON</label>
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

/** A warning about invisible characters in a condition. */
function InvisibleCharacters({ field, value }: ConditionDraft) {
  if (escapeUnseen(field + value) === field + value) return null
  return (
    <p class="problem">
      Contains invisible characters: <Quoted value={field} /> <Quoted value={value} />
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
      <legend>Rule {number}: users can</legend>
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
      <p class="muted">
        {conditions.length === 0 ? 'every record' : 'records that meet all of these conditions:'}
      </p>
      {conditions.map((condition, at) => (
        <div key={at}>
          <Condition
            condition={condition}
            comparisons={ruleComparisons}
            values={CLAIMS_ID}
            set={(changed) => setCondition(at, changed)}
          />
          <InvisibleCharacters {...condition} />
        </div>
      ))}
      <Field
        name="Types"
        placeholder="all application records; sys/*, auth/* and edge/* only if named"
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
          Add condition
        </button>
        <Button text={`Remove rule ${number}`} class="quiet" onClick={() => set(undefined)} />
      </div>
    </fieldset>
  )
}
