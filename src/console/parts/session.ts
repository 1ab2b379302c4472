import { signal } from '@preact/signals'
import { ServiceClient, ServiceError } from '../../client/index.js'
import { here, persistentStore, tabStore } from '../storage.js'
import { isObject } from './json.js'
import { noteResponse, noteNoResponse } from './server-state.js'
import { serviceUrl } from './service-url.js'

/** The server's answer to GET /v1/whoami. */
export type WhoAmI = Awaited<ReturnType<ServiceClient['whoAmI']>>

export interface SignedIn {
  kind: 'in'
  service: ServiceClient
  who: WhoAmI
}

export type Session = { kind: 'starting' } | { kind: 'out'; notice: string | undefined } | SignedIn

export type Scope = WhoAmI['scopes'][number]

export const session = signal<Session>({ kind: 'starting' })

/*
 * One session holds for all tabs of a browser. Each tab has the key in sessionStorage; a new tab requests it
 * from the others over a channel of this browser and origin. localStorage has no secret: only the time of the
 * last input and the id of the session, which is the time of the sign-in. A tab with another id was away when
 * its session ended.
 */
const KEY = 'key'
const ID = 'session'
const INPUT = 'input'

/** After this time without input in any tab, the console signs out. */
const IDLE_MINUTES = 30
const IDLE_NOTICE = `Signed out after ${IDLE_MINUTES} minutes of inactivity`
const CHECK_MS = 15_000
/** The time in which another tab answers. */
const ANSWER_MS = 1_000

/**
 * Signs in with the key of this tab or of another one.
 * @param notice says why there is no session, if there is none
 */
export async function resume(notice: string | undefined): Promise<void> {
  if (isIdle()) persistentStore.write(here(ID), undefined)
  const id = currentId()
  if (id !== tabStore.read(ID)) tabStore.clear()
  const key = id === undefined ? undefined : (sessionKey() ?? (await keyOfAnotherTab(id)))
  const identity = await identityOf(key)
  // This or another tab can have signed in or out in the meantime.
  if (id !== currentId()) return session.value.kind === 'in' ? undefined : resume(notice)
  if (identity.kind === 'in') enter(identity, key, id)
  else if (identity.isRefused) signOut('The server no longer accepts the key of this session')
  else endSession(identity.notice ?? notice)
}

type Identity = SignedIn | { kind: 'out'; isRefused: boolean; notice?: string }

async function identityOf(key: string | undefined): Promise<Identity> {
  if (key === undefined) return { kind: 'out', isRefused: false }
  const service = serviceFor(key)
  try {
    return { kind: 'in', service, who: await service.whoAmI() }
  } catch (error) {
    if (!(error instanceof ServiceError && error.status === 401))
      return { kind: 'out', isRefused: false, notice: explainSignIn(error) }
    return { kind: 'out', isRefused: true }
  }
}

/** Signs in. @returns the reason of a failure; undefined on success */
export async function signIn(key: string): Promise<string | undefined> {
  const service = serviceFor(key)
  try {
    const who = await service.whoAmI()
    const id = String(Date.now())
    enter({ kind: 'in', service, who }, key, id)
    persistentStore.write(here(ID), id)
    return undefined
  } catch (error) {
    return explainSignIn(error)
  }
}

function enter(value: SignedIn, key: string | undefined, id: string | undefined): void {
  tabStore.write(KEY, key)
  tabStore.write(ID, id)
  session.value = value
  storeInput()
}

/** The key of the session; undefined if there is none. */
export function sessionKey(): string | undefined {
  return tabStore.read(KEY)
}

export function signOut(notice?: string): void {
  // The other tabs may have another session by now.
  if (currentId() === tabStore.read(ID)) persistentStore.write(here(ID), undefined)
  tabStore.clear()
  endSession(notice)
}

/** Whether the key has a scope, directly or through `admin:*`. */
export function hasScope(who: WhoAmI, scope: Scope): boolean {
  return who.scopes.includes('admin:*') || who.scopes.includes(scope)
}

/** Whether the key can read the state of the whole server, which a key limited to agents cannot. */
export function canReadServer(who: WhoAmI): boolean {
  return hasScope(who, 'admin:*') && who.agents.length === 0
}

/**
 * Ends and begins the session together with the other tabs, and ends it after `IDLE_MINUTES` without input,
 * with the time during which the machine sleeps, and when the key expires.
 */
export function watchSession(): void {
  for (const event of ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart'])
    addEventListener(event, noteInput, { capture: true, passive: true })
  for (const event of ['storage', 'pageshow']) addEventListener(event, followOtherTabs)
  setInterval(() => {
    const { value } = session
    if (value.kind !== 'in') return
    const { expires_at_ms: expiresAtMs } = value.who
    if (isIdle()) signOut(IDLE_NOTICE)
    // The server decides by its own clock; its refusal signs out.
    else if (expiresAtMs !== null && Date.now() >= expiresAtMs) void value.service.whoAmI().catch(() => {})
  }, CHECK_MS)
}

function followOtherTabs(): void {
  if (session.value.kind === 'starting' || currentId() === tabStore.read(ID)) return
  const notice = isIdle() ? IDLE_NOTICE : 'Signed out in another tab'
  tabStore.clear()
  endSession(notice)
  void resume(notice)
}

/** Gives the key to new tabs. Only pages of the console do so. */
export function answerTabs(): void {
  const channel = openChannel()
  channel?.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
    const [id, key] = [tabStore.read(ID), sessionKey()]
    const isAsked = isObject(data) && data.wanted === id
    if (isAsked && key !== undefined && session.value.kind === 'in') channel.postMessage({ id, key })
  })
}

async function keyOfAnotherTab(id: string): Promise<string | undefined> {
  const channel = openChannel()
  if (channel === undefined) return undefined
  const key = await new Promise<string | undefined>((resolve) => {
    channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
      if (isObject(data) && data.id === id && typeof data.key === 'string') resolve(data.key)
    })
    channel.postMessage({ wanted: id })
    setTimeout(() => resolve(undefined), ANSWER_MS)
  })
  channel.close()
  return key
}

/** @returns undefined if the browser forbids it, as it can forbid storage */
function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(here('strandfast'))
  } catch {
    return undefined
  }
}

/** The id of the session of all tabs; undefined if there is none. */
function currentId(): string | undefined {
  return persistentStore.read(here(ID))
}

/** The last input in this tab. */
let inputAtMs = 0

function noteInput(): void {
  const { value } = session
  if (value.kind !== 'in' || Date.now() - inputAtMs < CHECK_MS) return
  // After the machine slept, input can arrive before the timer of `watchSession`.
  if (isIdle()) signOut(IDLE_NOTICE)
  else storeInput()
}

function storeInput(): void {
  inputAtMs = Date.now()
  persistentStore.write(here(INPUT), String(inputAtMs))
}

function isIdle(): boolean {
  const storedMs = Number(persistentStore.read(here(INPUT))) || 0
  return Date.now() - Math.max(storedMs, inputAtMs) >= IDLE_MINUTES * 60_000
}

function endSession(notice: string | undefined): void {
  session.value = { kind: 'out', notice }
}

function serviceFor(apiKey: string | undefined): ServiceClient {
  const watchedFetch: typeof fetch = async (...request) => {
    let response: Response
    try {
      response = await fetch(...request)
    } catch (error) {
      if (request[1]?.signal?.aborted !== true) noteNoResponse()
      throw error
    }
    noteResponse()
    // The answer to a request of an earlier session says nothing about this one.
    if (response.status === 401 && session.peek().kind === 'in' && sessionKey() === apiKey)
      signOut('The server no longer accepts this key. It may have expired or been deleted')
    return response
  }
  return new ServiceClient({ url: serviceUrl(), apiKey, fetch: watchedFetch })
}

function explainSignIn(error: unknown): string {
  if (!(error instanceof ServiceError)) return error instanceof Error ? error.message : String(error)
  if (error.status === 401) return 'The server does not know this key'
  return error.status === 0 ? 'The server cannot be reached. Try again' : error.message
}
