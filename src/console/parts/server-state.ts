import { signal } from '@preact/signals'
import { objectOfJson } from './json.js'
import { serviceUrl } from './service-url.js'

/** The state of the server as this page has last seen it. */
export type ServerState =
  | { kind: 'unknown' }
  | { kind: 'ready' }
  /** The server responds, but is not ready. */
  | { kind: 'limited'; detail: string }
  /** The server is a standby node of a cluster. */
  | { kind: 'standby'; serving: ServingNode | undefined }
  | { kind: 'unreachable' }
  /** The server was unreachable and is ready again. */
  | { kind: 'back' }

/** The active node of the cluster. */
export interface ServingNode {
  node: string
  /** Undefined if no address for browsers is known. */
  url: string | undefined
}

export const serverState = signal<ServerState>({ kind: 'unknown' })

const POLL_MS = 15_000
const RETRY_MS = 2_000

/** Polls the server while the page is visible, more often until it is ready, and while it is a standby. */
export function watchServer(): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isPolling = false
  const poll = async (): Promise<void> => {
    // One poll at a time: the result of a second one would remove the banner of `back` immediately.
    if (isPolling || document.visibilityState === 'hidden') return
    clearTimeout(timer)
    isPolling = true
    setState(await readiness())
    isPolling = false
    const { kind } = serverState.value
    const isSoon = wasUnreachable || kind === 'standby'
    timer = setTimeout(() => void poll(), isSoon ? RETRY_MS : POLL_MS)
  }
  document.addEventListener('visibilitychange', () => void poll())
  pollNow = () => void poll()
  void poll()
}

let pollNow: (() => void) | undefined

/** Reports that a request got no response. */
export function noteNoResponse(): void {
  if (serverState.value.kind === 'unreachable') return
  setState({ kind: 'unreachable' })
  pollNow?.()
}

/** Reports a response; polls immediately if the server was unreachable. */
export function noteResponse(): void {
  if (serverState.value.kind === 'unreachable') pollNow?.()
}

/** Whether the server was unreachable since it was last ready; a server that starts is not ready at first. */
let wasUnreachable = false

function setState(next: ServerState): void {
  // `back` stays until the next poll, so that the banner is noticed.
  serverState.value = next.kind === 'ready' && wasUnreachable ? { kind: 'back' } : next
  wasUnreachable = next.kind === 'unreachable' || (wasUnreachable && next.kind !== 'ready')
}

async function readiness(): Promise<ServerState> {
  try {
    const response = await fetch(`${serviceUrl()}/readyz`, {
      cache: 'no-store',
      signal: AbortSignal.timeout(POLL_MS),
    })
    const text = await response.text()
    return response.ok ? { kind: 'ready' } : notReady(text, response.status)
  } catch {
    // fetch rejects only if there was no complete response in time.
    return { kind: 'unreachable' }
  }
}

function notReady(text: string, status: number): ServerState {
  const { stands_by: isStandby, serving } = membersOf(text)
  if (isStandby === true) return { kind: 'standby', serving: servingOf(serving) }
  return { kind: 'limited', detail: detailOf(text, status) }
}

function servingOf(value: unknown): ServingNode | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { node, address }: { node?: unknown; address?: unknown } = value
  if (typeof node !== 'string') return undefined
  const isUrl = typeof address === 'string' && /^https?:\/\//.test(address)
  return { node, url: isUrl ? address : undefined }
}

function detailOf(text: string, status: number): string {
  const { detail } = membersOf(text)
  return typeof detail === 'string' ? detail : `GET /readyz returned status ${status}`
}

/** The members of a JSON object; empty for any other text, for example a proxy's page. */
function membersOf(text: string): Record<string, unknown> {
  return objectOfJson(text) ?? {}
}
