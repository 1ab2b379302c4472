import type { ServiceClient, User } from '../../client/index.js'
import { canReadServer, hasScope, type Scope, type SignedIn, type WhoAmI } from './session.js'
import { type Loaded, useLoaded } from './load.js'

/** A client for the users of an organism, or for users without an organism. */
export function namespaceOf(service: ServiceClient, organism: string | undefined): ServiceClient {
  return organism === undefined ? service : service.organism(organism)
}

/** The scope that manages the users of an organism, or those without an organism. */
export function neededForUsers(organism: string | undefined): Scope {
  return organism === undefined ? 'admin:*' : 'admin:organisms'
}

/** Whether the key can read the users of an organism, or those without an organism. */
export function canReadUsers(who: WhoAmI, organism: string | undefined): boolean {
  // The routes of users refuse keys that are limited to agents.
  return who.agents.length === 0 && hasScope(who, neededForUsers(organism))
}

/** Reads the user with an e-mail, ignoring case; undefined if there is none. */
export async function readUser(
  service: ServiceClient,
  email: string,
  signal: AbortSignal,
): Promise<User | undefined> {
  const folded = email.normalize('NFC').toLowerCase()
  // The exact e-mail sorts before all others with this prefix.
  const { users } = await service.auth.users.list({ prefix: folded, limit: 1, signal })
  return users.find((user) => user.email === folded)
}

/** Reads the user with an id; undefined if there is none. */
export async function readUserOfId(
  service: ServiceClient,
  userId: string,
  signal: AbortSignal,
): Promise<User | undefined> {
  return (await service.auth.users.list({ userId, signal })).users[0]
}

/** The ids of all organisms; empty if the key cannot list them. */
export function useOrganisms({ service, who }: SignedIn): Loaded<string[]> {
  const isAllowed = hasScope(who, 'admin:organisms') && who.agents.length === 0
  return useLoaded('organisms', async (signal) => (isAllowed ? idsOf(service, signal) : [])).loaded
}

async function idsOf(service: ServiceClient, signal: AbortSignal): Promise<string[]> {
  const { organisms } = await service.organisms.list({ signal })
  return organisms.map(({ organism_id: id }) => id)
}

/**
 * The name of the default agent, whose strand has the audit records of users without an organism. Only
 * administrators can read the setting; other keys get the client's default. Undefined until the server has
 * answered.
 */
export function useDefaultAgent({ service, who }: SignedIn): string | undefined {
  const isAllowed = canReadServer(who)
  const { loaded } = useLoaded('default agent', async (signal) => {
    if (!isAllowed) return undefined
    const { settings } = await service.server({ signal })
    return settings.find(({ name }) => name === 'SERVICE_AGENT_ID')?.value ?? undefined
  })
  return loaded.kind === 'loading' ? undefined : (loaded.value ?? service.agent().name)
}
