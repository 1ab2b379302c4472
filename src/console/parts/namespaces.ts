import type { ServiceClient } from '../../client/index.js'
import { type Loaded, useLoaded } from './load.js'
import { canReadServer, type SignedIn, hasScope } from './session.js'

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
