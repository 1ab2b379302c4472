import type { ServiceClient } from '../../client/index.js'
import { type Loaded, useLoaded } from './load.js'
import { type SignedIn, may } from './session.js'

/** The organisms' ids, for whoever may list them; none for others. */
export function useOrganisms({ service, who }: SignedIn): Loaded<string[]> {
  const isAllowed = may(who, 'admin:organisms')
  return useLoaded('organisms', async (signal) => (isAllowed ? idsOf(service, signal) : [])).loaded
}

async function idsOf(service: ServiceClient, signal: AbortSignal): Promise<string[]> {
  const { organisms } = await service.organisms.list({ signal })
  return organisms.map(({ organism_id: id }) => id)
}

/**
 * The default agent, whose strand takes the audit records of users outside organisms; only administrators can ask for
 * its name, which is `default` unless the server's settings say otherwise. Undefined while the server is asked.
 */
export function useDefaultAgent({ service, who }: SignedIn): string | undefined {
  const isAllowed = may(who, 'admin:*')
  const { loaded } = useLoaded('default agent', async (signal) => {
    if (!isAllowed) return undefined
    const { settings } = await service.server({ signal })
    return settings.find(({ name }) => name === 'SERVICE_AGENT_ID')?.value ?? undefined
  })
  return loaded.kind === 'loading' ? undefined : (loaded.value ?? service.agent().name)
}
