import { signal } from '@preact/signals'

/** The parts of an agent's screen. */
export const agentTabs = ['records', 'live', 'proof'] as const

export type AgentTab = (typeof agentTabs)[number]

/** The screen that an address names. */
export type Route =
  | { screen: 'start' }
  | { screen: 'first' }
  | { screen: 'agents' }
  | { screen: 'agent'; agent: string; tab: AgentTab; seq: number | undefined }
  | { screen: 'verify' }
  | { screen: 'unknown' }

/** Reads the part of an address behind `#`, with it. */
export function parseRoute(hash: string): Route {
  const [first, second, third, ...rest] = hash.replace(/^#?\/?/, '').split('/')
  if (rest.length > 0) return { screen: 'unknown' }
  if (first === 'agents' && second !== undefined && second !== '') return agentRoute(second, third)
  if (second !== undefined) return { screen: 'unknown' }
  if (first === '') return { screen: 'start' }
  if (first === 'start') return { screen: 'first' }
  return first === 'agents' || first === 'verify' ? { screen: first } : { screen: 'unknown' }
}

function agentRoute(name: string, part: string | undefined): Route {
  const agent = decoded(name)
  if (agent === undefined) return { screen: 'unknown' }
  if (part === undefined) return { screen: 'agent', agent, tab: 'records', seq: undefined }
  if (/^(0|[1-9][0-9]{0,14})$/.test(part))
    return { screen: 'agent', agent, tab: 'records', seq: Number(part) }
  const tab = agentTabs.find((one) => one === part)
  return tab === undefined ? { screen: 'unknown' } : { screen: 'agent', agent, tab, seq: undefined }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The address of an agent's screen, or of a part or record of it. */
export function agentLink(agent: string, part: AgentTab | number = 'records'): string {
  const address = `#/agents/${encodeURIComponent(agent)}`
  return part === 'records' ? address : `${address}/${part}`
}

/** The screen that is shown. */
export const route = signal<Route>(parseRoute(globalThis.location?.hash ?? ''))

/** Follows the address from now on. */
export function followAddress(): void {
  addEventListener('hashchange', () => {
    scrubAddress()
    route.value = parseRoute(location.hash)
  })
}

/** A key in an address would stay in histories and logs. Whether there was one; it is removed from the address. */
export function scrubAddress(): boolean {
  const { search, hash, pathname } = location
  const carriesKey = /[?&#/](api_?key|key|token)=/i
  if (search === '' && !carriesKey.test(hash)) return false
  const clean = carriesKey.test(hash) ? '' : hash
  history.replaceState(null, '', pathname + clean)
  return carriesKey.test(search) || clean !== hash
}
