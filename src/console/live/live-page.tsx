import { useRef, useState } from 'preact/hooks'
import type { ServiceClient } from '../../client/index.js'
import { namesReached } from '../parts/reached.js'
import { Field } from '../parts/field.js'
import { counted } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { Empty } from '../parts/texts.js'
import { TailButtons, TailRows, useTail } from '../parts/records/tail-rows.js'
import type { Tail } from '../parts/records/tail.js'
import { liveLink } from '../route.js'
import { type SignedIn, may } from '../parts/session.js'

/** Agents that one stream can name (GET /v1/stream). */
const AGENTS_MAX = 1_000
const NAMES_OFFERED = 20
const MINUTE_MS = 60_000

/** Records of all agents, or of those picked, as they come. */
export function LivePage({ session, agents }: { session: SignedIn; agents: readonly string[] | undefined }) {
  return (
    <div class="page">
      <h1>Live</h1>
      <p class="lead">
        Records of {agents === undefined ? 'all agents' : counted(agents.length, 'agent')} as they are
        written.
      </p>
      <Picked key={String(agents)} session={session} agents={agents ?? []} />
      {agents !== undefined ? (
        <Stream key={String(agents)} service={session.service} agents={agents} />
      ) : mayFollowAll(session) ? (
        <OfAll session={session} />
      ) : (
        <Empty title="All agents at once need a key that reads them">
          Sign in with a key that has <code>records:read</code>, or pick agents above whose rules let you
          read.
        </Empty>
      )}
    </div>
  )
}

/** What a stream of all agents is for: users name agents, since each agent has rules of its own for them. */
function mayFollowAll({ who }: Pick<SignedIn, 'who'>): boolean {
  return who.kind !== 'user' && may(who, 'records:read')
}

/** A key that is limited to agents has to name them. */
function OfAll({ session: { service, who } }: { session: SignedIn }) {
  const read = useLoaded<readonly string[] | undefined>('all', async (signal) =>
    who.agents.length === 0
      ? undefined
      : namesReached(service, who, { prefix: '', most: AGENTS_MAX, signal }),
  )
  return (
    <Read of={read} what="the names of the agents">
      {(agents) =>
        agents?.length === 0 ? (
          <Empty title="None of this key’s agents is there yet">The first write makes one.</Empty>
        ) : (
          <Stream service={service} agents={agents} />
        )
      }
    </Read>
  )
}

function Stream({ service, agents }: { service: ServiceClient; agents: readonly string[] | undefined }) {
  const tail = useTail(service, agents)
  const [isPretty, setPretty] = useState(false)
  return (
    <>
      <Controls tail={tail} isPretty={isPretty} setPretty={setPretty} />
      <TailRows tail={tail} name="Live records" isPretty={isPretty} ofMany />
    </>
  )
}

function Controls(props: { tail: Tail; isPretty: boolean; setPretty: (isPretty: boolean) => void }) {
  const { tail, isPretty, setPretty } = props
  const fieldInput = useRef<HTMLInputElement>(null)
  const [minutes, setMinutes] = useState('')
  return (
    <form
      class="tools"
      onSubmit={(event) => {
        event.preventDefault()
        const sinceMs = Date.now() - Number(minutes) * MINUTE_MS
        const since = minutes === '' ? undefined : new Date(sinceMs).toISOString()
        tail.begin({ since, field: fieldInput.current?.value.trim() ?? '' })
      }}
    >
      <TailButtons tail={tail} isPretty={isPretty} setPretty={setPretty} fieldInput={fieldInput} />
      <Field
        type="number"
        name="Minutes ago"
        min={0}
        max={1_440}
        step="any"
        placeholder="now"
        value={minutes}
        set={setMinutes}
      />
      <button type="submit">Begin there</button>
    </form>
  )
}

/** The agents that are picked, each to be left out, and a field to pick another. */
function Picked({ session: { service, who }, agents }: { session: SignedIn; agents: readonly string[] }) {
  const [typed, setTyped] = useState('')
  const isReader = mayFollowAll({ who })
  const { loaded } = useLoaded(typed, async (signal) =>
    isReader ? namesReached(service, who, { prefix: typed, most: NAMES_OFFERED, signal }) : [],
  )
  const pick = (names: readonly string[]): void => {
    location.hash = liveLink([...new Set(names)])
  }
  return (
    <form
      class="tools picked-agents"
      onSubmit={(event) => {
        event.preventDefault()
        if (typed !== '') pick([...agents, typed])
      }}
    >
      <Field
        name="Only the agent"
        list="live-agents"
        placeholder="all"
        pattern="[A-Za-z0-9_.:\-]{1,258}"
        value={typed}
        set={setTyped}
      />
      <datalist id="live-agents">
        {(loaded.value ?? []).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <button type="submit">Pick</button>
      {agents.map((name) => (
        <button
          key={name}
          type="button"
          class="quiet"
          aria-label={`Leave out ${name}`}
          onClick={() => pick(agents.filter((one) => one !== name))}
        >
          {name} ✕
        </button>
      ))}
    </form>
  )
}
