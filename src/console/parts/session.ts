import { signal } from '@preact/signals'
import { ServiceClient, ServiceError } from '../../client/index.js'
import { clearTabStore, tabStore } from '../storage.js'
import { isDataOpen, noteResponse, noteNoResponse } from './server-state.js'
import { serviceUrl } from './service-url.js'

/** The server's answer to GET /v1/whoami. */
export type WhoAmI = Awaited<ReturnType<ServiceClient['whoAmI']>>

/** A signed-in session. */
export interface SignedIn {
  kind: 'in'
  service: ServiceClient
  who: WhoAmI
}

/** The state of the session. */
export type Session = { kind: 'starting' } | { kind: 'out'; notice: string | undefined } | SignedIn

/** A scope of a key. */
export type Scope = WhoAmI['scopes'][number]

export const session = signal<Session>({ kind: 'starting' })

const NAME = 'key'
/** After this time without input, the console signs out. */
export const IDLE_MINUTES = 30
const IDLE_CHECK_MS = 15_000

/** Signs in with the key stored in this tab, or without a key if the server requires none. */
export async function resume(notice: string | undefined): Promise<void> {
  const key = tabStore.read(NAME)
  // Most servers refuse a call without a key, and browsers report the refusal as an error.
  if (key === undefined && !(await isDataOpen())) return endSession(notice)
  const service = serviceFor(key)
  try {
    session.value = { kind: 'in', service, who: await service.whoAmI() }
  } catch (error) {
    const isRefused = error instanceof ServiceError && error.status === 401
    if (!isRefused) return endSession(explainSignIn(error))
    endSession(key === undefined ? notice : 'The server no longer accepts the key of this tab')
  }
}

/** Signs in. @returns the reason of a failure; undefined on success */
export async function signIn(key: string): Promise<string | undefined> {
  const service = serviceFor(key)
  try {
    const who = await service.whoAmI()
    tabStore.write(NAME, key)
    session.value = { kind: 'in', service, who }
    return undefined
  } catch (error) {
    return explainSignIn(error)
  }
}

/** The key of the session; undefined if the server requires none. */
export function sessionKey(): string | undefined {
  return tabStore.read(NAME)
}

/** Signs out and removes the key from the tab. */
export function signOut(notice?: string): void {
  clearTabStore()
  endSession(notice)
}

/** Whether the key has a scope, directly or through `admin:*`. */
export function hasScope(who: WhoAmI, scope: Scope): boolean {
  return who.kind === 'open' || who.scopes.includes('admin:*') || who.scopes.includes(scope)
}

/** Whether the key can read the state of the whole server, which a key limited to agents cannot. */
export function canReadServer(who: WhoAmI): boolean {
  return hasScope(who, 'admin:*') && who.agents.length === 0
}

/** Signs out after `IDLE_MINUTES` without input. Time during which the machine sleeps counts. */
export function watchIdle(): void {
  let lastInputAtMs = Date.now()
  const noteInput = (): void => {
    lastInputAtMs = Date.now()
  }
  for (const event of ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart']) {
    addEventListener(event, noteInput, { capture: true, passive: true })
  }
  setInterval(() => {
    const { value } = session
    if (value.kind !== 'in' || value.who.kind === 'open') return noteInput()
    if (Date.now() - lastInputAtMs >= IDLE_MINUTES * 60_000)
      signOut(`Signed out after ${IDLE_MINUTES} minutes of inactivity`)
  }, IDLE_CHECK_MS)
}

function endSession(notice: string | undefined): void {
  session.value = { kind: 'out', notice }
}

function serviceFor(apiKey: string | undefined): ServiceClient {
  return new ServiceClient({ url: serviceUrl(), apiKey, fetch: watchedFetch })
}

async function watchedFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  let response: Response
  try {
    response = await fetch(...request)
  } catch (error) {
    if (request[1]?.signal?.aborted !== true) noteNoResponse()
    throw error
  }
  noteResponse()
  if (response.status === 401 && session.peek().kind === 'in')
    signOut('The server no longer accepts this key. It may have expired or been deleted')
  return response
}

function explainSignIn(error: unknown): string {
  if (!(error instanceof ServiceError)) return error instanceof Error ? error.message : String(error)
  if (error.status === 401) return 'The server does not know this key'
  return error.status === 0 ? 'The server cannot be reached. Try again' : error.message
}
