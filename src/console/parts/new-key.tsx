import { useState } from 'preact/hooks'
import type { ApiKeyMade } from '../../client/index.js'
import { Dialog } from './dialog.js'
import { proposalLink } from '../route.js'
import { Field, Form, Problem, Choice, sameLabels, Tick } from './field.js'
import { counted } from './format.js'
import { useChange, useLoaded } from './load.js'
import { Button, CopyButton, Time } from './texts.js'
import type { Scope, SignedIn } from './session.js'
import { scopeMeanings } from './labels.js'
import { countMatchingAgents, readPatterns } from './accessible-agents.js'

const DAY_SECS = 86_400
const NAME_CHARS_MAX = 128

const scopes = Object.keys(scopeMeanings).filter((text): text is Scope => text in scopeMeanings)

/** The days until a key expires, by their names. */
const expiries: Readonly<Record<string, number | undefined>> = {
  Never: undefined,
  'In a day': 1,
  'In 7 days': 7,
  'In 30 days': 30,
  'In 90 days': 90,
  'In a year': 365,
}

interface Draft {
  name: string
  scopes: readonly Scope[]
  isLimited: boolean
  agents: string
  days: number | undefined
}

const emptyDraft: Draft = { name: '', scopes: [], isLimited: false, agents: '', days: undefined }

/** A dialog that creates a key and shows it once. */
export function NewKey(props: { session: SignedIn; created: () => void; close: () => void }) {
  const { session, close } = props
  const [draft, setDraft] = useState(emptyDraft)
  const { isBusy, problem, run } = useChange()
  const [key, setKey] = useState<ApiKeyMade | undefined>(undefined)
  const create = async (): Promise<void> => {
    const body = bodyOf(draft)
    if ('fault' in body) throw new Error(body.fault)
    setKey(await session.service.apiKeys.create(body.body))
    props.created()
  }
  if (key !== undefined) return <CreatedKey created={key} close={close} />
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change })
  return (
    <Dialog title="New key" class="dialog" close={close}>
      <h2>New key</h2>
      <Form submit={() => run(create)}>
        <Field
          name="Name"
          maxLength={NAME_CHARS_MAX}
          placeholder="The person or program that uses the key"
          value={draft.name}
          set={(name) => set({ name })}
        />
        <Scopes draft={draft} set={set} />
        <Agents session={session} draft={draft} set={set} />
        <ExpiryChoice session={session} draft={draft} set={set} />
        <Problem text={problem} />
        <div class="buttons">
          <Button text="Create key" type="submit" class="primary" disabled={isBusy} />
          <Button text="Cancel" onClick={close} />
        </div>
      </Form>
    </Dialog>
  )
}

/** Shows a created key once. Only its button closes this dialog, so that the key is not lost by accident. */
function CreatedKey({ created, close }: { created: ApiKeyMade; close: () => void }) {
  const [isWarned, setWarned] = useState(false)
  return (
    <Dialog title="New key" class="dialog" close={() => setWarned(true)}>
      <h2>Key “{created.name}”</h2>
      {'proposal_id' in created && (
        <p class="notice warn">
          <strong>This key does not work yet.</strong> It can decide about proposals, so a key with{' '}
          <code>admin:*</code> from another lineage than yours has to approve it first.{' '}
          <a href={proposalLink(created.proposal_id)}>Open its proposal</a>
        </p>
      )}
      <p>
        Save the key now, in a password manager. The server stores only its hash and cannot show it again.
      </p>
      <div class="shown-once">
        <label class="field">
          Key
          <input
            class="long-input"
            readOnly
            value={created.key}
            onFocus={(event) => event.currentTarget.select()}
          />
        </label>
        <CopyButton text={created.key} name="the key" />
      </div>
      <p class="problem" role="status">
        {isWarned ? 'The key is not shown again after you close this dialog' : ''}
      </p>
      <div class="buttons">
        <Button text="I’ve saved it" class="primary" onClick={close} />
      </div>
    </Dialog>
  )
}

function bodyOf({ name, scopes: chosen, isLimited, agents, days }: Draft) {
  if (name.trim() === '') return { fault: 'Enter a name for the key' }
  if (chosen.length === 0) return { fault: 'Select at least one permission' }
  const read = isLimited ? readPatterns(agents) : { patterns: [] }
  if ('fault' in read) return { fault: read.fault }
  if (isLimited && read.patterns.length === 0)
    return { fault: 'Enter the agents that the key can access, or choose all' }
  return {
    body: {
      name: name.trim(),
      scopes: scopes.filter((one) => chosen.includes(one)),
      agents: read.patterns,
      ...(days !== undefined && { expires_in_secs: days * DAY_SECS }),
    },
  }
}

interface PartProps {
  draft: Draft
  set: (change: Partial<Draft>) => void
}

function Scopes({ draft: { scopes: chosen }, set }: PartProps) {
  const toggle = (scope: Scope): void =>
    set({ scopes: chosen.includes(scope) ? chosen.filter((one) => one !== scope) : [...chosen, scope] })
  const writes = chosen.includes('records:write') || chosen.includes('ingest')
  const destroys = chosen.includes('records:delete') || chosen.includes('records:erase')
  const mayDecide = chosen.includes('proposals:decide') || chosen.includes('admin:*')
  return (
    <fieldset class="scopes">
      <legend>Permissions</legend>
      {scopes.map((scope) => (
        <Tick key={scope} isOn={chosen.includes(scope)} set={() => toggle(scope)}>
          <span>
            {scopeMeanings[scope]} <code class="muted">{scope}</code>
          </span>
        </Tick>
      ))}
      <p class={writes && destroys ? 'notice' : 'muted'}>
        A program that writes needs only <code>records:write</code> or <code>ingest</code>. Without{' '}
        <code>records:delete</code> and <code>records:erase</code>, a stolen key cannot remove records.
      </p>
      {mayDecide && (
        <p class="notice">
          A key that can decide about proposals needs approval itself if two keys with <code>admin:*</code>{' '}
          exist: it works after another key has approved it.
        </p>
      )}
    </fieldset>
  )
}

function Agents({ session: { service }, draft, set }: PartProps & { session: SignedIn }) {
  const { isLimited, agents } = draft
  const read = readPatterns(isLimited ? agents : '*')
  const patterns = 'patterns' in read ? read.patterns : []
  const { loaded } = useLoaded(patterns.join(' '), (signal) => countMatchingAgents(service, patterns, signal))
  return (
    <fieldset>
      <legend>Agents</legend>
      <label class="choice">
        <input type="radio" name="agents" checked={!isLimited} onChange={() => set({ isLimited: false })} />
        All, including agents created later
      </label>
      <label class="choice">
        <input type="radio" name="agents" checked={isLimited} onChange={() => set({ isLimited: true })} />
        Only these
      </label>
      {isLimited && (
        <Field
          name="Names, or prefixes with *"
          class="long-input"
          placeholder="sensor-*, weather"
          value={agents}
          set={(typed) => set({ agents: typed })}
        />
      )}
      <p class="muted" role="status">
        {'fault' in read
          ? read.fault
          : loaded.kind === 'failed'
            ? loaded.message
            : loaded.value === undefined
              ? ''
              : `${counted(loaded.value, 'agent')} today`}
      </p>
    </fieldset>
  )
}

function ExpiryChoice({ session: { who }, draft: { days }, set }: PartProps & { session: SignedIn }) {
  return (
    <>
      <Choice
        name="Expires"
        value={Object.keys(expiries).find((name) => expiries[name] === days) ?? ''}
        options={sameLabels(Object.keys(expiries))}
        set={(name) => set({ days: expiries[name] })}
      />
      {who.expires_at_ms !== null && (
        <p class="muted">
          Your own key expires on <Time ms={who.expires_at_ms} />. Keys that it creates expire no later.
        </p>
      )}
    </>
  )
}
