import { useState } from 'preact/hooks'
import type { ApiKeyMade } from '../../client/index.js'
import { Dialog } from './dialog.js'
import { proposalLink } from '../route.js'
import { Field, Problem } from './field.js'
import { counted } from './format.js'
import { useChange, useLoaded } from './load.js'
import { CopyButton, Time } from './texts.js'
import type { Scope, SignedIn } from './session.js'
import { scopeMeanings } from './words.js'
import { countReached, readPatterns } from './reached.js'

const DAY_SECS = 86_400
const NAME_CHARS_MAX = 128

const scopes: readonly Scope[] = [
  'records:read',
  'records:write',
  'records:delete',
  'records:erase',
  'ingest',
  'agents:admin',
  'proposals:decide',
  'admin:organisms',
  'admin:*',
]

const expiries = [
  { name: 'Never', days: undefined },
  { name: 'In a day', days: 1 },
  { name: 'In 7 days', days: 7 },
  { name: 'In 30 days', days: 30 },
  { name: 'In 90 days', days: 90 },
  { name: 'In a year', days: 365 },
] as const

interface Draft {
  name: string
  scopes: readonly Scope[]
  isLimited: boolean
  agents: string
  days: number | undefined
}

const emptyDraft: Draft = { name: '', scopes: [], isLimited: false, agents: '', days: undefined }

/** Makes a key, and shows it once. */
export function NewKey(props: { session: SignedIn; made: () => void; close: () => void }) {
  const { session, close } = props
  const [draft, setDraft] = useState(emptyDraft)
  const { isBusy, problem, run } = useChange()
  const [key, setKey] = useState<ApiKeyMade | undefined>(undefined)
  const make = async (): Promise<void> => {
    const body = bodyOf(draft)
    if ('fault' in body) throw new Error(body.fault)
    setKey(await session.service.apiKeys.create(body.body))
    props.made()
  }
  if (key !== undefined) return <MadeKey made={key} close={close} />
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change })
  return (
    <Dialog title="New key" class="dialog" close={close}>
      <h2>New key</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void run(make)
        }}
      >
        <Field
          name="Name"
          maxLength={NAME_CHARS_MAX}
          placeholder="Who or what will use it"
          value={draft.name}
          set={(name) => set({ name })}
        />
        <Scopes draft={draft} set={set} />
        <Agents session={session} draft={draft} set={set} />
        <ExpiryChoice session={session} draft={draft} set={set} />
        <Problem text={problem} />
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy}>
            Make the key
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** A key that was just made: shown this once, so the dialog closes by its button alone. */
function MadeKey({ made, close }: { made: ApiKeyMade; close: () => void }) {
  const [isHeld, setHeld] = useState(false)
  return (
    <Dialog title="The new key" class="dialog" close={() => setHeld(true)}>
      <h2>The key “{made.name}”</h2>
      {'proposal_id' in made && (
        <p class="notice warn">
          <strong>It does not work yet.</strong> It may decide about proposals, so somebody else has to
          approve it first: a key with <code>admin:*</code> that comes from another key than yours.{' '}
          <a href={proposalLink(made.proposal_id)}>Look at its proposal</a>
        </p>
      )}
      <p>Keep it now, in a password manager. The server keeps only its hash, and cannot show it again.</p>
      <div class="shown-once">
        <label class="field">
          Key
          <input
            class="long-input"
            readOnly
            value={made.key}
            onFocus={(event) => event.currentTarget.select()}
          />
        </label>
        <CopyButton text={made.key} name="the key" />
      </div>
      <p class="problem" role="status">
        {isHeld ? 'It is not shown again once this is closed' : ''}
      </p>
      <div class="buttons">
        <button type="button" class="primary" onClick={close}>
          I have kept it
        </button>
      </div>
    </Dialog>
  )
}

function bodyOf({ name, scopes: chosen, isLimited, agents, days }: Draft) {
  if (name.trim() === '') return { fault: 'Expected a name, by which you know the key later' }
  if (chosen.length === 0) return { fault: 'Expected something that the key may do' }
  const read = isLimited ? readPatterns(agents) : { patterns: [] }
  if ('fault' in read) return { fault: read.fault }
  if (isLimited && read.patterns.length === 0)
    return { fault: 'Expected the agents that the key reaches, or the choice of all' }
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
      <legend>What it may do</legend>
      {scopes.map((scope) => (
        <label key={scope} class="tick">
          <input type="checkbox" checked={chosen.includes(scope)} onChange={() => toggle(scope)} />
          <span>
            {scopeMeanings[scope]} <code class="muted">{scope}</code>
          </span>
        </label>
      ))}
      <p class={writes && destroys ? 'notice' : 'muted'}>
        A program that writes needs <code>records:write</code> or <code>ingest</code> alone. Without{' '}
        <code>records:delete</code> and <code>records:erase</code>, a stolen key cannot remove what was
        written.
      </p>
      {mayDecide && (
        <p class="notice">
          A key that may decide about proposals needs approval itself once two keys with <code>admin:*</code>{' '}
          are there: it then works when somebody else has approved it.
        </p>
      )}
    </fieldset>
  )
}

function Agents({ session: { service }, draft, set }: PartProps & { session: SignedIn }) {
  const { isLimited, agents } = draft
  const read = readPatterns(isLimited ? agents : '*')
  const patterns = 'patterns' in read ? read.patterns : []
  const { loaded } = useLoaded(patterns.join(' '), (signal) => countReached(service, patterns, signal))
  return (
    <fieldset>
      <legend>Agents that it reaches</legend>
      <label class="choice">
        <input type="radio" name="agents" checked={!isLimited} onChange={() => set({ isLimited: false })} />
        All, also those that are made later
      </label>
      <label class="choice">
        <input type="radio" name="agents" checked={isLimited} onChange={() => set({ isLimited: true })} />
        Only these
      </label>
      {isLimited && (
        <Field
          name="Names, or beginnings and *"
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
      <label class="field">
        Expires
        <select
          value={String(days ?? '')}
          onChange={(event) => {
            const { value } = event.currentTarget
            set({ days: value === '' ? undefined : Number(value) })
          }}
        >
          {expiries.map((one) => (
            <option key={one.name} value={String(one.days ?? '')}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      {who.expires_at_ms !== null && (
        <p class="muted">
          Your own key expires on <Time ms={who.expires_at_ms} />, and so do the keys that it makes, at the
          latest.
        </p>
      )}
    </>
  )
}
