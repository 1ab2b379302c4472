import { reaches } from '../../../auth/namespace.js'
import { escapeUnseen } from '../../../auth/shown-text.js'
import type { ApiKey, Zone } from '../../../client/index.js'
import { type SignedIn, hasScope, type WhoAmI } from '../../parts/session.js'

/** The keys of the server and the delay of zone `governed`, which only administrators can read. */
export interface ApprovalContext {
  /**
   * Seconds after which a proposal of zone `governed` is applied; undefined if the setting is not a number.
   */
  governedSecs: number | undefined
  keys: ApiKey[]
}

/** The keys that can approve a change, and the number of approvals that it needs. */
export interface Approvers {
  names: string[]
  /** The number of possible approvals: keys of one lineage count once. */
  lineages: number
  needed: number
}

const GOVERNED_SECS = 'SERVICE_GOVERNED_AUTO_APPROVE_SECS'

/** Reads the keys and the delay; undefined if the key cannot read them. */
export async function readApprovalContext(
  { service, who }: SignedIn,
  signal: AbortSignal,
): Promise<ApprovalContext | undefined> {
  if (!hasScope(who, 'admin:*') || who.agents.length > 0) return undefined
  const { settings } = await service.server({ signal })
  const setting = settings.find(({ name }) => name === GOVERNED_SECS)
  const secs = Number(setting?.value ?? setting?.default)
  const keys: ApiKey[] = []
  for await (const key of service.apiKeys.listAll({ signal })) keys.push(key)
  return { governedSecs: Number.isFinite(secs) ? secs : undefined, keys }
}

/**
 * The keys that could approve a proposal made now (docs/ZONES.md); undefined if the zone needs no approval.
 */
export function approversOf(
  keys: readonly ApiKey[],
  about: { who: WhoAmI; agent: string; zone: Zone; nowMs: number },
): Approvers | undefined {
  const { who, agent, zone, nowMs } = about
  if (zone === 'free' || zone === 'governed') return undefined
  const ownLineage = keys.find(({ key_id: id }) => id === who.principal)?.line ?? who.principal
  const able = keys.filter(
    ({ line, scopes, agents, expires_at_ms: expiresAtMs }) =>
      line !== ownLineage &&
      (expiresAtMs === null || expiresAtMs > nowMs) &&
      (scopes.includes('admin:*') || (zone === 'protected' && scopes.includes('proposals:decide'))) &&
      reaches(agents, agent),
  )
  // The root key shares its lineage with no other key.
  const isRootAble = who.principal !== 'root'
  return {
    names: [...(isRootAble ? ['the root key'] : []), ...able.map(({ name }) => `“${escapeUnseen(name)}”`)],
    lineages: new Set(able.map(({ line }) => line)).size + (isRootAble ? 1 : 0),
    needed: zone === 'immutable_core' ? 2 : 1,
  }
}
