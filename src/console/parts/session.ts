import { signal } from '@preact/signals'
import { ServiceClient, ServiceError } from '../../client/index.js'
import { forgetPassing, passing } from '../storage.js'
import { asksForNoKey, gotAnswer, gotNoAnswer } from './server-state.js'
import { serviceUrl } from './service-url.js'

/** What the server says about a key. */
export type WhoAmI = Awaited<ReturnType<ServiceClient['whoAmI']>>

/** Somebody who is signed in. */
export interface SignedIn {
  kind: 'in'
  service: ServiceClient
  who: WhoAmI
}

/** Who uses the page. */
export type Session = { kind: 'starting' } | { kind: 'out'; notice: string | undefined } | SignedIn

/** Something that a key may be allowed to do. */
export type Scope = WhoAmI['scopes'][number]

export const session = signal<Session>({ kind: 'starting' })

const NAME = 'key'
/** Without a touch of the page for this long, the key is forgotten. */
export const IDLE_MINUTES = 30
const IDLE_LOOK_MS = 15_000

/** Signs in with the key of this tab, or without one where the server asks for none. */
export async function resume(notice: string | undefined): Promise<void> {
  const key = passing.read(NAME)
  // Asking without a key would be refused by most servers, and browsers report a refusal as an error.
  if (key === undefined && !(await asksForNoKey())) return out(notice)
  const service = serviceFor(key)
  try {
    session.value = { kind: 'in', service, who: await service.whoAmI() }
  } catch (error) {
    const isRefused = error instanceof ServiceError && error.status === 401
    if (!isRefused) return out(explainSignIn(error))
    out(key === undefined ? notice : 'The server no longer accepts the key of this tab')
  }
}

/** Signs in. @returns why not, or undefined */
export async function signIn(key: string): Promise<string | undefined> {
  const service = serviceFor(key)
  try {
    const who = await service.whoAmI()
    passing.write(NAME, key)
    session.value = { kind: 'in', service, who }
    return undefined
  } catch (error) {
    return explainSignIn(error)
  }
}

/** Forgets the key. */
export function signOut(notice?: string): void {
  forgetPassing()
  out(notice)
}

/** Whether what the key may do includes this. */
export function may(who: WhoAmI, scope: Scope): boolean {
  return who.kind === 'open' || who.scopes.includes('admin:*') || who.scopes.includes(scope)
}

/** Whether the key is told about the server as a whole: a key that is limited to agents is not. */
export function seesServer(who: WhoAmI): boolean {
  return may(who, 'admin:*') && who.agents.length === 0
}

/** Signs out when nobody has touched the page for `IDLE_MINUTES`, also over a sleep of the machine. */
export function watchIdle(): void {
  let touchedAtMs = Date.now()
  const touch = (): void => {
    touchedAtMs = Date.now()
  }
  for (const event of ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart']) {
    addEventListener(event, touch, { capture: true, passive: true })
  }
  setInterval(() => {
    const { value } = session
    if (value.kind !== 'in' || value.who.kind === 'open') return touch()
    if (Date.now() - touchedAtMs >= IDLE_MINUTES * 60_000)
      signOut(`Signed out after ${IDLE_MINUTES} minutes without use`)
  }, IDLE_LOOK_MS)
}

function out(notice: string | undefined): void {
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
    if (request[1]?.signal?.aborted !== true) gotNoAnswer()
    throw error
  }
  gotAnswer()
  if (response.status === 401 && session.peek().kind === 'in')
    signOut('The server no longer accepts this key. It may have expired, or somebody has deleted it')
  return response
}

function explainSignIn(error: unknown): string {
  if (!(error instanceof ServiceError)) return error instanceof Error ? error.message : String(error)
  if (error.status === 401) return 'The server does not know this key'
  return error.status === 0 ? 'The server cannot be reached. Try again' : error.message
}
