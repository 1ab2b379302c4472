import { useRef, useState } from 'preact/hooks'
import type { ServiceClient } from '../../client/index.js'
import { switchType, textType, useAddress } from '../parts/address.js'
import { accessibleAgentNames } from '../parts/accessible-agents.js'
import { Field, Form } from '../parts/field.js'
import { counted, isoOf } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { useRoving } from '../parts/roving.js'
import { Button, Empty } from '../parts/texts.js'
import { TailButtons, TailRows, useTail } from '../parts/records/tail-rows.js'
import type { Tail } from '../parts/records/tail.js'
import { liveLink, STREAM_AGENTS_MAX } from '../route.js'
import { type SignedIn, hasScope } from '../parts/session.js'

const NAMES_OFFERED = 20
const MINUTE_MS = 60_000
const MINUTES_MAX = 1_440

/** The live view of all agents, or of chosen ones. */
export function LivePage({ session, agents }: { session: SignedIn; agents: readonly string[] | undefined }) {
  return (
    <div class="page">
      <h1>Live view</h1>
      <p class="lead">
        Records of {agents === undefined ? 'all agents' : counted(agents.length, 'agent')} as they are
        written.
      </p>
      <Picked key={String(agents)} session={session} agents={agents ?? []} />
      {agents !== undefined ? (
        <Stream key={String(agents)} service={session.service} agents={agents} />
      ) : canFollowAll(session) ? (
        <AllAgents session={session} />
      ) : (
        <Empty title="This key cannot read all agents">
          Sign in with a key that has <code>records:read</code>, or choose agents above whose rules let you
          read.
        </Empty>
      )}
    </div>
  )
}

/** Users cannot subscribe to all agents, because each agent has its own rules. */
function canFollowAll({ who }: Pick<SignedIn, 'who'>): boolean {
  return who.kind !== 'user' && hasScope(who, 'records:read')
}

/** The stream of all agents. A key that is limited to agents has to name them. */
function AllAgents({ session: { service, who } }: { session: SignedIn }) {
  const read = useLoaded<readonly string[] | undefined>('all', async (signal) =>
    who.agents.length === 0
      ? undefined
      : accessibleAgentNames(service, who, { contains: '', most: STREAM_AGENTS_MAX, signal }),
  )
  return (
    <Read of={read} what="the names of the agents">
      {(agents) =>
        agents?.length === 0 ? (
          <Empty title="No agents yet">
            The first write to an agent that this key can access creates it.
          </Empty>
        ) : (
          <Stream service={service} agents={agents} />
        )
      }
    </Read>
  )
}

function Stream({ service, agents }: { service: ServiceClient; agents: readonly string[] | undefined }) {
  const [minutes] = useAddress('minutes', textType)
  const [field] = useAddress('field', textType)
  const tail = useTail(service, agents, { since: sinceOf(minutes), field })
  const [isPretty, setPretty] = useAddress('pretty', switchType)
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
  const [minutes, setMinutes] = useAddress('minutes', textType)
  const tools = useRoving<HTMLFormElement>()
  return (
    <Form
      ref={tools}
      class="tools"
      submit={() => {
        tail.begin({ since: sinceOf(minutes), field: fieldInput.current?.value.trim() ?? '' })
      }}
    >
      <TailButtons tail={tail} isPretty={isPretty} setPretty={setPretty} fieldInput={fieldInput} />
      <Field
        type="number"
        name="Minutes ago"
        min={0}
        max={MINUTES_MAX}
        step="any"
        placeholder="now"
        value={minutes}
        set={setMinutes}
      />
      <Button text="Start there" type="submit" />
    </Form>
  )
}

/** @returns undefined for now, also if it is not a number from 0 to `MINUTES_MAX` */
function sinceOf(text: string): string | undefined {
  const minutes = Number(text)
  const isAgo = text !== '' && minutes >= 0 && minutes <= MINUTES_MAX
  return isAgo ? isoOf(Date.now() - minutes * MINUTE_MS) : undefined
}

/** The chosen agents with buttons to remove them, and a field to add one. */
function Picked({ session: { service, who }, agents }: { session: SignedIn; agents: readonly string[] }) {
  const [typed, setTyped] = useState('')
  const isReader = canFollowAll({ who })
  const { loaded } = useLoaded(typed, async (signal) =>
    isReader ? accessibleAgentNames(service, who, { contains: typed, most: NAMES_OFFERED, signal }) : [],
  )
  const pick = (names: readonly string[]): void => {
    location.hash = liveLink([...new Set(names)])
  }
  return (
    <Form
      class="tools picked-agents"
      submit={() => {
        if (typed !== '') pick([...agents, typed])
      }}
    >
      <Field
        name="Only agent"
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
      <Button text="Add" type="submit" />
      {agents.map((name) => (
        <Button
          text={`${name} ✕`}
          key={name}
          class="quiet"
          aria-label={`Remove ${name}`}
          onClick={() => pick(agents.filter((one) => one !== name))}
        />
      ))}
    </Form>
  )
}
