import type { RefObject } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { ServiceClient } from '../../../client/index.js'
import { switchType, textType, useAddress } from '../address.js'
import { TextInput } from '../field.js'
import { countText, lineText } from '../format.js'
import { Button, Empty, Time } from '../texts.js'
import { agentLink } from '../../route.js'
import {
  type LiveBlock,
  type LiveRow,
  ROWS_MAX,
  Tail,
  type TailSource,
  type TailStart,
  type TailState,
} from './tail.js'

/** A tail for the lifetime of a component, from now unless `start` says otherwise. */
export function useTail(
  service: ServiceClient,
  of: TailSource,
  { since, field = '' }: Partial<TailStart> = {},
): Tail {
  const [showsSystem] = useAddress('system', switchType)
  const tail = useMemo(() => new Tail(service, of, showsSystem), [service, String(of)])
  useEffect(() => {
    tail.begin({ since, field })
    return () => tail.close()
  }, [tail])
  return tail
}

/** The rows of a tail, newest first, and its state. */
export function TailRows(props: {
  tail: Tail
  name: string
  isPretty: boolean
  /** Whether the rows come from several agents, so that each row shows its agent. */
  ofMany?: boolean
}) {
  const { tail, name, isPretty, ofMany = false } = props
  const list = useRef<HTMLOListElement>(null)
  const toTop = (): void => {
    list.current?.scrollTo({ top: 0 })
    tail.hold(false)
  }
  const blocks = tail.blocks.value
  const waiting = tail.waiting.value
  return (
    <>
      <TailLine tail={tail} />
      {waiting > 0 && <Button text={`Show ${countText(waiting)} new`} class="waiting" onClick={toTop} />}
      {blocks.length === 0 && (
        <Empty title="No records yet">
          Records appear here as they are written. To see earlier records, choose{' '}
          {ofMany ? 'an earlier time' : 'a record to start from'} above.
        </Empty>
      )}
      <ol
        ref={list}
        class={`live-rows ${blocks.length === 0 ? 'none' : ''} ${ofMany ? 'of-many' : ''}`}
        aria-label={name}
        tabIndex={0}
        onScroll={(event) => tail.hold(event.currentTarget.scrollTop > 0)}
      >
        {blocks.map((block) => (
          <Block key={block.id} block={block} isPretty={isPretty} ofMany={ofMany} />
        ))}
      </ol>
    </>
  )
}

/** Controls of every tail: pause, format bodies, show system records, filter by a field. */
export function TailButtons(props: {
  tail: Tail
  isPretty: boolean
  setPretty: (isPretty: boolean) => void
  fieldInput: RefObject<HTMLInputElement | null>
}) {
  const { tail, isPretty, setPretty, fieldInput } = props
  const [field, setField] = useAddress('field', textType)
  const [showsSystem, setSystem] = useAddress('system', switchType)
  const { kind } = tail.state.value
  const isPaused = kind === 'paused' || kind === 'elsewhere'
  return (
    <>
      <button type="button" onClick={() => (isPaused ? tail.resume() : tail.pause('paused'))}>
        {isPaused ? 'Resume' : 'Pause'}
      </button>
      <Button text="Pretty" aria-pressed={isPretty} onClick={() => setPretty(!isPretty)} />
      <SystemButton
        isOn={showsSystem}
        set={(isOn) => {
          setSystem(isOn)
          tail.showSystem(isOn)
        }}
      />
      <label class="field">
        With field
        <TextInput
          ref={fieldInput}
          placeholder="any"
          defaultValue={field}
          onChange={(event) => {
            setField(event.currentTarget.value.trim())
            tail.narrow(event.currentTarget.value.trim())
          }}
        />
      </label>
    </>
  )
}

/** A button that shows system records too. */
export function SystemButton({ isOn, set }: { isOn: boolean; set: (isOn: boolean) => void }) {
  return (
    <Button
      text="System records"
      aria-pressed={isOn}
      title="The types sys/* and edge/*: erasures, rules, votes, edges and others"
      onClick={() => set(!isOn)}
    />
  )
}

function TailLine({ tail }: { tail: Tail }) {
  const received = tail.received.value
  const state = tail.state.value
  return (
    <p class="tail-line">
      <span role="status">{state.kind === 'refused' ? state.message : stateTexts[state.kind]}</span>
      <span class="muted"> · {countText(tail.perSecond.value)} per second</span>
      {received > ROWS_MAX && (
        <span class="muted">
          {' '}
          · the last {ROWS_MAX} of {countText(received)} records, in order of time
        </span>
      )}
    </p>
  )
}

const stateTexts: Record<Exclude<TailState['kind'], 'refused'>, string> = {
  connecting: 'Connecting…',
  replaying: 'Loading earlier records…',
  live: 'Live',
  lost: 'Connection lost. Reconnecting from the last record',
  paused: 'Paused. Resume continues here without a gap',
  hidden: 'Paused while the page is hidden',
  elsewhere: 'Paused, because other tabs are live. It continues when you return to this tab',
}

/** Only the newest and the oldest block change; Preact skips an element that is identical to the last one. */
function Block({ block, isPretty, ofMany }: { block: LiveBlock; isPretty: boolean; ofMany: boolean }) {
  return useMemo(
    () => (
      <>
        {block.rows.map((row) => (
          <TailRow key={row.id} row={row} isPretty={isPretty} ofMany={ofMany} />
        ))}
      </>
    ),
    [block, isPretty, ofMany],
  )
}

export function TailRow(props: { row: Omit<LiveRow, 'id'>; isPretty: boolean; ofMany: boolean }) {
  const { row, isPretty, ofMany } = props
  const { agent, seq } = row
  return (
    <li>
      {ofMany && (
        <a class="agent" href={agentLink(agent)}>
          {agent}
        </a>
      )}
      <a
        href={agentLink(agent, seq)}
        aria-label={ofMany ? `Record ${countText(seq)} of ${agent}` : `Record ${countText(seq)}`}
      >
        {countText(seq)}
      </a>
      <Time ms={row.ms} />
      <code class="type">{row.type}</code>
      {isPretty ? (
        <pre>{JSON.stringify(row.payload, null, 2)}</pre>
      ) : (
        <code class="body">{lineText(JSON.stringify(row.payload))}</code>
      )}
    </li>
  )
}
