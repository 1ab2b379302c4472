import { signal } from '@preact/signals'

/** The tabs of an agent's screen. */
export const agentTabs = ['records', 'live', 'time', 'proof', 'graph', 'rules', 'agent'] as const

export type AgentTab = (typeof agentTabs)[number]

export const proposalLists = ['waiting', 'mine', 'decided'] as const

export type ProposalList = (typeof proposalLists)[number]

/** Screens whose address is their name. */
const plainScreens = ['home', 'account', 'agents', 'verify', 'log', 'health'] as const

/** The most agents of one stream (GET /v1/stream). */
export const STREAM_AGENTS_MAX = 1_000

const wholeNumber = /^(0|[1-9][0-9]{0,14})$/

/** The screen that an address names. */
export type Route =
  | { screen: 'start' }
  | { screen: 'first' }
  | { screen: 'agents' }
  | { screen: 'agent'; agent: string; tab: AgentTab; seq: number | undefined }
  | { screen: 'proposals'; list: ProposalList | undefined; id: string | undefined }
  /** `search` is a part of a name or an id; empty for all keys. */
  | { screen: 'keys'; search: string }
  | { screen: 'log' }
  | { screen: 'home' }
  /** The signed-in identity and its permissions. */
  | { screen: 'account' }
  | { screen: 'health' }
  /** `agents` is undefined for all agents that the key can read. */
  | { screen: 'live'; agents: readonly string[] | undefined }
  | { screen: 'verify' }
  | { screen: 'trace'; id: string }
  /** `agent` is undefined for the audit strand of users without an organism. */
  | { screen: 'audit'; agent: string | undefined; seq: number | undefined }
  /** `organism` is undefined for users without an organism. One user has an `email`, or only an `id`. */
  | { screen: 'users'; organism: string | undefined; email: string | undefined; id: string | undefined }
  | { screen: 'unknown' }

/** Parses the fragment of an address, including its `#`, up to its `?`. */
export function parseRoute(hash: string): Route {
  const [path = ''] = hash.replace(/^#?\/?/, '').split('?')
  const [first, second, third, ...rest] = path.split('/')
  if (rest.length > 0) return { screen: 'unknown' }
  if (first === 'agents' && second !== undefined && second !== '') return agentRoute(second, third)
  if (first === 'keys' && third === undefined) return keysRoute(second)
  if (first === 'proposals' && third === undefined) return proposalsRoute(second)
  if (first === 'audit') return auditRoute(second, third)
  if (first === 'users') return usersRoute(second, third)
  if (first === 'live' && third === undefined) return liveRoute(second)
  if (first === 'traces' && third === undefined && /^[0-9a-f]{32}$/.test(second ?? ''))
    return { screen: 'trace', id: second ?? '' }
  if (second !== undefined) return { screen: 'unknown' }
  if (first === '') return { screen: 'start' }
  if (first === 'start') return { screen: 'first' }
  const screen = plainScreens.find((one) => one === first)
  return { screen: screen ?? 'unknown' }
}

function liveRoute(part: string | undefined): Route {
  if (part === undefined) return { screen: 'live', agents: undefined }
  const agents = [...new Set(decoded(part)?.split(',').slice(0, STREAM_AGENTS_MAX))]
  return agents.length === 0 || agents.includes('') ? { screen: 'unknown' } : { screen: 'live', agents }
}

function proposalsRoute(part: string | undefined): Route {
  const list = part === undefined ? 'waiting' : proposalLists.find((one) => one === part)
  if (list !== undefined) return { screen: 'proposals', list, id: undefined }
  const id = decoded(part ?? '')
  return id !== undefined && /^p_[0-9]+_./.test(id)
    ? { screen: 'proposals', list: undefined, id }
    : { screen: 'unknown' }
}

function auditRoute(name: string | undefined, part: string | undefined): Route {
  const agent = name === undefined ? undefined : decoded(name)
  if (name !== undefined && (agent === undefined || agent === '')) return { screen: 'unknown' }
  if (part !== undefined && !wholeNumber.test(part)) return { screen: 'unknown' }
  return { screen: 'audit', agent, seq: part === undefined ? undefined : Number(part) }
}

function keysRoute(part: string | undefined): Route {
  const search = decoded(part ?? '')
  return search === undefined ? { screen: 'unknown' } : { screen: 'keys', search }
}

/** An e-mail contains an `@`, and the id of a user follows a `~`; the id of an organism has neither. */
function usersRoute(first: string | undefined, second: string | undefined): Route {
  const parts = [first, second].flatMap((part) => (part === undefined ? [] : [decoded(part) ?? '']))
  if (parts.includes('')) return { screen: 'unknown' }
  const isUser = (part: string | undefined): boolean => part !== undefined && /@|^~/.test(part)
  const user = parts.find(isUser)
  const organism = parts.find((part) => !isUser(part))
  const isInOrder = second === undefined || (organism === parts[0] && user === parts[1])
  if (!isInOrder || user === '~') return { screen: 'unknown' }
  const isEmail = user?.includes('@') === true
  return {
    screen: 'users',
    organism,
    email: isEmail ? user : undefined,
    id: isEmail ? undefined : user?.slice(1),
  }
}

function agentRoute(name: string, part: string | undefined): Route {
  const agent = decoded(name)
  if (agent === undefined) return { screen: 'unknown' }
  const shown = { screen: 'agent', agent, seq: undefined } as const
  if (part === undefined) return { ...shown, tab: 'records' }
  if (wholeNumber.test(part)) return { ...shown, tab: 'records', seq: Number(part) }
  const tab = agentTabs.find((one) => one === part)
  return tab === undefined ? { screen: 'unknown' } : { ...shown, tab }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * The address of an agent's screen, of one of its tabs, or of a record by its seq.
 * @param shown what the tab shows, as in `query`
 */
export function agentLink(agent: string, part: AgentTab | number = 'records', shown = ''): string {
  const address = `#/agents/${encodeURIComponent(agent)}`
  return withQuery(part === 'records' ? address : `${address}/${part}`, shown)
}

/** The address of the API keys whose name or id contains a text. */
export function keysLink(search: string): string {
  return search === '' ? '#/keys' : `#/keys/${encodeURIComponent(search)}`
}

/** The address of a proposal, or of a list of them. */
export function proposalLink(part: string): string {
  return part === 'waiting' ? '#/proposals' : `#/proposals/${encodeURIComponent(part)}`
}

/** The address of a trace, and of the times at which its records were written; undefined: the last 24 hours. */
export function traceLink(
  id: string,
  times?: { fromMs: number | undefined; toMs: number | undefined },
): string {
  const iso = (ms: number | undefined): string => (ms === undefined ? '' : new Date(ms).toISOString())
  return `#/traces/${id}` + (times === undefined ? '' : `?from=${iso(times.fromMs)}&to=${iso(times.toMs)}`)
}

/** The address of an audit strand, or of one of its records. */
export function auditLink(agent: string, seq?: number): string {
  const address = `#/audit/${encodeURIComponent(agent)}`
  return seq === undefined ? address : `${address}/${seq}`
}

/** The address of the live view of these agents; an empty list means all agents. */
export function liveLink(agents: readonly string[]): string {
  return agents.length === 0 ? '#/live' : `#/live/${encodeURIComponent(agents.join(','))}`
}

/** The address of the users of a namespace, or of one user. */
export function usersLink(organism: string | undefined, email?: string): string {
  const parts = [organism, email].flatMap((part) => (part === undefined ? [] : [encodeURIComponent(part)]))
  return ['#/users', ...parts].join('/')
}

/** The address of a user whose e-mail is not known. */
export function userIdLink(organism: string | undefined, id: string): string {
  return usersLink(organism, `~${id}`)
}

/** The address of a screen that shows what `shown` says, as in `query`. */
export function withQuery(address: string, shown: string): string {
  return shown === '' ? address : `${address}?${shown}`
}

/** The part of an address behind its `?`. */
export function queryOf(hash: string): string {
  return /\?(.*)$/s.exec(hash)?.[1] ?? ''
}

const firstHash = globalThis.location?.hash ?? ''

/** The current screen. */
export const route = signal<Route>(parseRoute(firstHash))

/** The part of the address behind `?`: what the screen shows. `useAddress` reads and changes it. */
export const query = signal(queryOf(firstHash))

/** Updates `route` and `query` whenever the address changes. */
export function followAddress(): void {
  addEventListener('hashchange', () => {
    scrubAddress()
    readAddress()
  })
}

function readAddress(): void {
  query.value = queryOf(location.hash)
  route.value = parseRoute(location.hash)
}

/** Shows an address immediately. @param how `replace` adds nothing to the browser's history */
export function goTo(address: string, how: 'push' | 'replace'): void {
  if (how === 'push') history.pushState(null, '', address)
  else history.replaceState(history.state, '', address)
  readAddress()
}

/**
 * Removes a key from the address, because histories and logs keep addresses.
 * @returns whether the address contained a key
 */
export function scrubAddress(): boolean {
  const { search, hash, pathname } = location
  const carriesKey = /[?&#/](api_?key|key|token)=/i
  if (search === '' && !carriesKey.test(hash)) return false
  const clean = carriesKey.test(hash) ? '' : hash
  history.replaceState(null, '', pathname + clean)
  return carriesKey.test(search) || clean !== hash
}
