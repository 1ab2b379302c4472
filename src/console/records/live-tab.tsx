import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../client/index.js'
import { explain } from '../parts/explain.js'
import { countText, lineText } from '../parts/format.js'
import { Empty, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import { readStrandPart } from './record-row.js'
import { type LiveBlock, type LiveRow, Tail, type TailState } from './tail.js'

/** Records of an agent as they come. */
export function LiveTab({ service, status }: { service: ServiceClient; status: AgentStatusResponse }) {
  const { agent_id: agent } = status
  const tail = useMemo(() => new Tail(service, agent), [service, agent])
  const [isPretty, setPretty] = useState(false)
  const list = useRef<HTMLOListElement>(null)
  useEffect(() => {
    tail.begin({ since: undefined, field: '' })
    const seen = (): void => {
      const isPaused = tail.state.peek().kind === 'paused'
      if (document.visibilityState === 'hidden') {
        if (!isPaused) tail.pause('hidden')
      } else if (tail.state.peek().kind === 'hidden') tail.resume()
    }
    document.addEventListener('visibilitychange', seen)
    return () => {
      document.removeEventListener('visibilitychange', seen)
      tail.close()
    }
  }, [tail])
  const toTop = (): void => {
    list.current?.scrollTo({ top: 0 })
    tail.hold(false)
  }
  const blocks = tail.blocks.value
  const waiting = tail.waiting.value
  return (
    <>
      <Controls service={service} status={status} tail={tail} isPretty={isPretty} setPretty={setPretty} />
      <TailLine tail={tail} />
      {waiting > 0 && (
        <button type="button" class="waiting" onClick={toTop}>
          Show {countText(waiting)} new
        </button>
      )}
      {blocks.length === 0 && (
        <Empty title="Nothing has come yet">
          Records appear here as they are written. To see earlier ones, begin at a record above.
        </Empty>
      )}
      <ol
        ref={list}
        class={blocks.length === 0 ? 'live-rows none' : 'live-rows'}
        aria-label={`Live records of ${agent}`}
        tabIndex={0}
        onScroll={(event) => tail.hold(event.currentTarget.scrollTop > 0)}
      >
        {blocks.map((block) => (
          <Block key={block.id} agent={agent} block={block} isPretty={isPretty} />
        ))}
      </ol>
    </>
  )
}

function Controls(props: {
  service: ServiceClient
  status: AgentStatusResponse
  tail: Tail
  isPretty: boolean
  setPretty: (isPretty: boolean) => void
}) {
  const { service, status, tail, isPretty, setPretty } = props
  const { agent_id: agent, record_count: headSeq } = status
  const [from, setFrom] = useState('')
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const isPaused = tail.state.value.kind === 'paused'
  const begin = async (): Promise<void> => {
    setProblem(undefined)
    const field = fieldInput.current?.value.trim() ?? ''
    if (from === '') return tail.begin({ since: undefined, field })
    try {
      const range = { fromSeq: Number(from), toSeq: Number(from), signal: AbortSignal.timeout(READ_MS) }
      const [row] = (await readStrandPart(service, agent, range)).rows
      tail.begin({ since: row?.hlc, field })
    } catch (error) {
      setProblem(explain(error))
    }
  }
  const fieldInput = useRef<HTMLInputElement>(null)
  return (
    <form
      class="tools"
      onSubmit={(event) => {
        event.preventDefault()
        void begin()
      }}
    >
      <button type="button" onClick={() => (isPaused ? tail.resume() : tail.pause('paused'))}>
        {isPaused ? 'Resume' : 'Pause'}
      </button>
      <button type="button" aria-pressed={isPretty} onClick={() => setPretty(!isPretty)}>
        Pretty
      </button>
      <label class="field">
        With the field
        <input
          ref={fieldInput}
          placeholder="any"
          autocomplete="off"
          spellcheck={false}
          onChange={(event) => tail.narrow(event.currentTarget.value.trim())}
        />
      </label>
      <label class="field">
        From record
        <input
          type="number"
          min={0}
          max={headSeq}
          step={1}
          placeholder="now"
          value={from}
          onInput={(event) => setFrom(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Begin there</button>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </form>
  )
}

const READ_MS = 30_000

function TailLine({ tail }: { tail: Tail }) {
  return (
    <p class="tail-line">
      <span role="status">{stateText(tail.state.value)}</span>
      <span class="muted"> · {countText(tail.perSecond.value)} a second</span>
    </p>
  )
}

function stateText(state: TailState): string {
  switch (state.kind) {
    case 'connecting':
      return 'Connecting…'
    case 'replaying':
      return 'Reading earlier records…'
    case 'live':
      return 'Live'
    case 'lost':
      return 'The connection is lost. It is opened again from the last record'
    case 'paused':
      return 'Paused. Nothing is missed: it goes on from here'
    case 'hidden':
      return 'Paused while the page is hidden'
    case 'refused':
      return state.message
  }
}

/** Only the newest and the oldest block change: an element that is the same again is passed over. */
function Block({ agent, block, isPretty }: { agent: string; block: LiveBlock; isPretty: boolean }) {
  return useMemo(
    () => (
      <>
        {block.rows.map((row) => (
          <Row key={row.seq} agent={agent} row={row} isPretty={isPretty} />
        ))}
      </>
    ),
    [agent, block, isPretty],
  )
}

function Row({ agent, row, isPretty }: { agent: string; row: LiveRow; isPretty: boolean }) {
  return (
    <li>
      <a href={agentLink(agent, row.seq)} aria-label={`Record ${row.seq}`}>
        {countText(row.seq)}
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
