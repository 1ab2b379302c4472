import { signal } from '@preact/signals'
import { objectOfJson } from './json.js'
import { serviceUrl } from './service-url.js'

/** Whether the server answers, as far as this page has seen. */
export type ServerState =
  | { kind: 'unknown' }
  | { kind: 'ready' }
  /** It answers, and serves less than usual. */
  | { kind: 'limited'; detail: string }
  /** It is a node of a cluster that stands by. */
  | { kind: 'standsBy'; serving: Serving | undefined }
  | { kind: 'away' }
  /** It answers again. */
  | { kind: 'back' }

/** The node that serves in its place. */
export interface Serving {
  node: string
  /** Absent where it is not known how a browser reaches it. */
  url: string | undefined
}

export const serverState = signal<ServerState>({ kind: 'unknown' })

let isOpen = false
let sayLooked = (): void => undefined
const looked = new Promise<void>((resolve) => {
  sayLooked = resolve
})

/** Whether the server asks for no key; known once it was looked at. */
export async function asksForNoKey(): Promise<boolean> {
  await looked
  return isOpen
}

const LOOK_MS = 15_000
const LOOK_AWAY_MS = 2_000

/** Looks at the server now and then while the page is seen, more often while the server is away. */
export function watchServer(): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = async (): Promise<void> => {
    clearTimeout(timer)
    if (document.visibilityState === 'hidden') return
    took(await readiness())
    clearTimeout(timer)
    const { kind } = serverState.value
    const isSoon = kind === 'away' || kind === 'standsBy'
    timer = setTimeout(() => void look(), isSoon ? LOOK_AWAY_MS : LOOK_MS)
  }
  document.addEventListener('visibilitychange', () => void look())
  lookNow = () => void look()
  void look()
}

let lookNow: (() => void) | undefined

/** Takes note that a call got no answer. */
export function gotNoAnswer(): void {
  if (serverState.value.kind === 'away') return
  took({ kind: 'away' })
  lookNow?.()
}

/** Takes note of an answer while the server was away. */
export function gotAnswer(): void {
  if (serverState.value.kind === 'away') lookNow?.()
}

function took(next: ServerState): void {
  // `back` stays until the next look, so that the banner is seen.
  const isBack = next.kind === 'ready' && serverState.value.kind === 'away'
  serverState.value = isBack ? { kind: 'back' } : next
  sayLooked()
}

async function readiness(): Promise<ServerState> {
  try {
    const response = await fetch(`${serviceUrl()}/readyz`, { cache: 'no-store' })
    const text = await response.text()
    if (!response.ok) return notReady(text, response.status)
    isOpen = membersOf(text)['data_open'] === true
    return { kind: 'ready' }
  } catch {
    // A fetch rejects only where no answer came.
    return { kind: 'away' }
  }
}

function notReady(text: string, status: number): ServerState {
  const { stands_by: standsBy, serving } = membersOf(text)
  if (standsBy === true) return { kind: 'standsBy', serving: servingOf(serving) }
  return { kind: 'limited', detail: detailOf(text, status) }
}

function servingOf(value: unknown): Serving | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { node, address }: { node?: unknown; address?: unknown } = value
  if (typeof node !== 'string') return undefined
  const isUrl = typeof address === 'string' && /^https?:\/\//.test(address)
  return { node, url: isUrl ? address : undefined }
}

function detailOf(text: string, status: number): string {
  const { detail } = membersOf(text)
  return typeof detail === 'string' ? detail : `It answers with status ${status}`
}

/** The members of a JSON object; none for any other text, such as a proxy's page. */
function membersOf(text: string): Record<string, unknown> {
  return objectOfJson(text) ?? {}
}
