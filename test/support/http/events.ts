import { onTestFailed, TestRunner } from 'vitest'
import { recordSuccess } from './answers.js'
import { fetchAfterClose } from './fetch-seen.js'
import type { ServerAddress } from '../server/server.js'
import { whileLinked } from '../server/through-standby.js'

/** One received server-sent event. */
export interface TestEvent {
  id: string
  event: string
  // Payloads of every shape.
  // oxlint-disable-next-line no-explicit-any
  data: any
}

/** An open stream, with all its events. */
export interface TestStream {
  events: TestEvent[]
  /** The received text, including comments. */
  text(): string
  /** Resolves when `condition` holds for the events; rejects if the stream ends before that. */
  until(condition: (events: readonly TestEvent[]) => boolean): Promise<void>
  /** Resolves when the server has ended the stream. */
  ended: Promise<void>
  close(): void
}

/** Opens a stream with the root key, another key, or none (null), and reads it in the background. */
export async function openStream(
  server: ServerAddress,
  path: string,
  options: { key?: string | null; headers?: Record<string, string> } = {},
): Promise<TestStream> {
  const key = options.key === undefined ? server.rootKey : options.key
  const headers = { ...options.headers, ...(key === null ? {} : { authorization: `Bearer ${key}` }) }
  const abort = new AbortController()
  const response = await whileLinked(() =>
    fetchAfterClose(server.url + path, { headers, signal: abort.signal }),
  )
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  recordSuccess(`GET ${path}`, response)
  const stream = readStream(response, abort)
  // A wait without end says nothing by itself.
  if (TestRunner.getCurrentTest() !== undefined)
    onTestFailed(() =>
      console.error(`${path}: ${stream.events.length} events, …${stream.text().slice(-500)}`),
    )
  return stream
}

/** The member `n` of the payloads of all record events. */
export function numbersOf(events: readonly TestEvent[]): number[] {
  return events.filter(({ event }) => event === 'record').map(({ data }) => data.payload.n)
}

/** Whether the replay has reached live events. */
export function isCaughtUp(events: readonly TestEvent[]): boolean {
  return events.some(({ event }) => event === 'caught_up')
}

function readStream(response: Response, abort: AbortController): TestStream {
  const events: TestEvent[] = []
  let text = ''
  let isOver = false
  let wake = () => {}
  const read = async () => {
    const decoder = new TextDecoder()
    let parsed = 0
    try {
      for await (const bytes of response.body ?? []) {
        text += decoder.decode(bytes, { stream: true })
        for (let end = text.indexOf('\n\n', parsed); end !== -1; end = text.indexOf('\n\n', parsed)) {
          const event = parseEvent(text.slice(parsed, end))
          if (event !== undefined) events.push(event)
          parsed = end + 2
        }
        wake()
      }
    } catch {
      // Closed by the test.
    }
    isOver = true
    wake()
  }
  const ended = read()
  return {
    events,
    text: () => text,
    ended,
    close: () => abort.abort(),
    async until(condition) {
      while (!condition(events)) {
        if (isOver) throw new Error(`The stream ended before:\n${text}`)
        await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}

function parseEvent(block: string): TestEvent | undefined {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const [name = '', value = ''] = line.split(/: (.*)/s)
    if (name !== '') fields.set(name, value)
  }
  const event = fields.get('event')
  if (event === undefined) return undefined
  return { id: fields.get('id') ?? '', event, data: JSON.parse(fields.get('data') ?? 'null') }
}
