import { appearance, appearances } from './appearance.js'
import { missingFor, navItems, publicNavItems } from './nav-items.js'
import { countText, isUtc, keyDigits, showUtc } from '../parts/format.js'
import { hasScope, type Scope, type Session, type SignedIn, signOut } from '../parts/session.js'
import { escapeUnseen } from '../../auth/shown-text.js'
import { type ServerInfo, type ServiceClient, ServiceError } from '../../client/index.js'
import { accessibleAgentNames } from '../parts/accessible-agents.js'
import { organismOf } from '../parts/audit-events.js'
import { findRecords, hashDigits } from '../parts/records/record-row.js'
import { readKeyNames } from '../parts/principal.js'
import { canReadUsers, namespaceOf } from '../parts/users.js'
import { traceIdOf } from '../parts/trace/telemetry.js'
import { agentLink, keysLink, proposalLink, traceLink, usersLink } from '../route.js'

/** The dialog over the page. */
export type Overlay = 'nothing' | 'palette' | 'new-agent' | 'new-key'

/** An entry of the palette. */
export interface Command {
  name: string
  kind: 'screen' | 'action' | 'agent' | 'record' | 'trace' | 'proposal' | 'key' | 'user'
  /** The scope that the key lacks, or access to agents. */
  missing?: string | undefined
  /** @returns the dialog to show next, if any */
  act: () => Overlay | undefined
}

const appearanceNames = { system: 'system setting', light: 'light', dark: 'dark' }

/** The screens and actions that the palette offers in this session. */
export function commandsFor(current: Session): Command[] {
  const looks = appearances.map((one) => ({
    ...action(`Appearance: ${appearanceNames[one]}`),
    act: () => {
      appearance.value = one
      return undefined
    },
  }))
  const times = {
    ...action(`Times in ${isUtc.value ? 'local time' : 'UTC'}`),
    act: () => {
      showUtc(!isUtc.value)
      return undefined
    },
  }
  const verify: Command = { ...action('Verify a file'), act: () => goTo('#/verify') }
  if (current.kind !== 'in')
    return [...publicNavItems.map(({ name, href }) => linkCommand('screen', name, href)), verify, ...looks]
  const { who } = current
  const unless = (scope: Scope): Scope | undefined => (hasScope(who, scope) ? undefined : scope)
  const screens = navItems.map((item) => ({
    ...linkCommand('screen', item.name, item.href),
    missing: missingFor(item, who),
  }))
  return [
    ...screens,
    linkCommand('screen', 'Permissions', '#/account'),
    { ...action('New agent'), missing: unless('agents:admin'), act: () => 'new-agent' },
    {
      ...action('New key'),
      missing: screens.find(({ name }) => name === 'Keys')?.missing,
      act: () => 'new-key',
    },
    verify,
    ...looks,
    times,
    { ...action('Sign out'), act: () => void signOut('Signed out in all tabs. The key was removed') },
  ]
}

/** A command that opens an address. */
function linkCommand(kind: Command['kind'], name: string, href: string): Command {
  return { name, kind, act: () => goTo(href) }
}

function action(name: string): Pick<Command, 'name' | 'kind'> {
  return { name, kind: 'action' }
}

function goTo(href: string): undefined {
  if (href.startsWith('#')) location.hash = href
  else location.assign(href)
}

/** The most results of one kind. */
const SHOWN = 8
/** The most organisms whose users are searched. */
const ORGANISMS_MAX = 20
/** One or two ASCII characters are a part of most ids of keys. */
const shortPart = /^[!-~]{0,2}$/
/** A text that can be the beginning of an e-mail. The server refuses any other. */
const emailPart = /^[^\p{C}\s]{3,254}$/u
/** A search begins after this pause, so that fast typing does not search for each character. */
const PAUSE_MS = 100

/**
 * What a text finds on the server, as far as the key can read it: agents by a part of their name, records by
 * their hash, traces, proposals by their id, keys by id or name, users by id or e-mail.
 */
export async function find(current: SignedIn, typed: string, signal: AbortSignal): Promise<Command[]> {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  signal.throwIfAborted()
  const found = await Promise.all([
    foundRecords(current, typed, signal),
    foundTrace(current, typed),
    foundProposal(current, typed),
    foundUsers(current, typed, signal),
    foundKeys(current, typed),
    foundAgents(current, typed, signal),
  ])
  return found.flat()
}

async function foundAgents({ service, who }: SignedIn, contains: string, signal: AbortSignal) {
  if (!hasScope(who, 'records:read')) return []
  const names = await accessibleAgentNames(service, who, { contains, most: SHOWN, signal })
  return names.map((name) => linkCommand('agent', name, agentLink(name)))
}

async function foundRecords({ service, who }: SignedIn, typed: string, signal: AbortSignal) {
  const digits = hashDigits(typed)
  if (digits === undefined || (who.kind !== 'user' && !hasScope(who, 'records:read'))) return []
  const found = await findRecords(service, digits, signal)
  return found
    .slice(0, SHOWN)
    .map(({ agent, seq }) =>
      linkCommand('record', `Record ${countText(seq)} of ${agent}`, agentLink(agent, seq)),
    )
}

/** The page of a trace searches for its records, and says if there are none. */
function foundTrace({ who }: SignedIn, typed: string): Command[] {
  const id = traceIdOf(typed)
  if (id === undefined || !hasScope(who, 'records:read')) return []
  return [linkCommand('trace', `Trace ${id}`, traceLink(id))]
}

/** Proposals are found by their id alone; its page says if there is none. */
function foundProposal({ who }: SignedIn, typed: string): Command[] {
  if (!/^p_[0-9]+_./.test(typed) || !hasScope(who, 'proposals:decide')) return []
  return [linkCommand('proposal', `Proposal ${typed}`, proposalLink(typed))]
}

async function foundKeys(current: SignedIn, typed: string): Promise<Command[]> {
  const part = typed.replace(/^…/, '').toLowerCase()
  if (shortPart.test(part)) return []
  return [...(await readKeyNames(current))]
    .filter(([id, name]) => id.includes(part) || name.toLowerCase().includes(part))
    .slice(0, SHOWN)
    .map(([id, name]) => linkCommand('key', `${escapeUnseen(name)} …${keyDigits(id)}`, keysLink(id)))
}

async function foundUsers(current: SignedIn, typed: string, signal: AbortSignal): Promise<Command[]> {
  const id = /^(?:user:[^:]*:)?(usr_[0-9a-f]{32})$/.exec(typed)?.[1]
  if (id === undefined && !emailPart.test(typed)) return []
  // The part before the `@` is searched among the users without an organization: each organization is a request.
  const isWhole = id !== undefined || typed.includes('@')
  if (!isWhole && !(await hasRootUsers(current))) return []
  const organisms = [undefined, ...(isWhole ? await organismsWithUsers(current, signal) : [])]
  const found = await Promise.all(
    organisms
      .filter((organism) => canReadUsers(current.who, organism))
      .map(async (organism) => {
        const { auth } = namespaceOf(current.service, organism)
        const { users } = await auth.users
          .list({ userId: id, prefix: id === undefined ? typed : undefined, limit: SHOWN, signal })
          .catch(noUsersWhereDisabled)
        const of = organism === undefined ? '' : ` of ${organism}`
        return users.map(({ email }) =>
          linkCommand('user', `${escapeUnseen(email)}${of}`, usersLink(organism, email)),
        )
      }),
  )
  return found.flat().slice(0, SHOWN)
}

const signIns = new WeakMap<ServiceClient, Promise<boolean>>()

/** Whether the key can read users without an organization, and the server has sign-in, as its settings say once. */
async function hasRootUsers({ service, who }: SignedIn): Promise<boolean> {
  if (!canReadUsers(who, undefined)) return false
  const known = signIns.get(service) ?? service.server().then(isSignInOn)
  signIns.set(service, known)
  known.catch(() => signIns.delete(service))
  return known
}

function isSignInOn({ settings }: ServerInfo): boolean {
  return settings.some(({ name, value }) => name === 'SERVICE_AUTH_ENABLED' && value === 'true')
}

/** The organisms that have users, each with an agent for their audit records. */
async function organismsWithUsers({ service, who }: SignedIn, signal: AbortSignal): Promise<string[]> {
  if (!hasScope(who, 'admin:organisms') || !hasScope(who, 'records:read')) return []
  const names = await accessibleAgentNames(service, who, { contains: '::auth', most: ORGANISMS_MAX, signal })
  return names.flatMap((name) => organismOf(name) ?? [])
}

function noUsersWhereDisabled(error: unknown): { users: [] } {
  if (error instanceof ServiceError && error.code === 'auth_disabled') return { users: [] }
  throw error
}
