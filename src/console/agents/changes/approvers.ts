import { escapeUnseen } from '../../../auth/shown-text.js'
import type { ApiKey, Zone } from '../../../client/index.js'
import { type SignedIn, may, type WhoAmI } from '../../parts/session.js'

/** What an administrator may know of who decides. */
export interface Deciding {
  /** Seconds after which a proposal of zone `governed` applies itself; undefined where that cannot be read. */
  governedSecs: number | undefined
  keys: ApiKey[]
}

/** Who could approve a change now, and how many of them have to. */
export interface Approvers {
  /** As people know them. */
  names: string[]
  /** How many could approve one proposal: keys that come from the same key count as one. */
  lines: number
  needed: number
}

const GOVERNED_SECS = 'SERVICE_GOVERNED_AUTO_APPROVE_SECS'

/** Reads who decides; undefined for a key that may not see that. */
export async function readDeciding(
  { service, who }: SignedIn,
  signal: AbortSignal,
): Promise<Deciding | undefined> {
  if (!may(who, 'admin:*') || who.agents.length > 0) return undefined
  const { settings } = await service.server({ signal })
  const setting = settings.find(({ name }) => name === GOVERNED_SECS)
  const secs = Number(setting?.value ?? setting?.default)
  const keys: ApiKey[] = []
  for await (const key of service.apiKeys.listAll({ signal })) keys.push(key)
  return { governedSecs: Number.isFinite(secs) ? secs : undefined, keys }
}

/**
 * Who could approve what somebody proposes now (docs/OPERATIONS.md, Zones and proposals); undefined where a zone needs
 * nobody.
 */
export function approversOf(
  keys: readonly ApiKey[],
  about: { who: WhoAmI; agent: string; zone: Zone; nowMs: number },
): Approvers | undefined {
  const { who, agent, zone, nowMs } = about
  if (zone === 'free' || zone === 'governed') return undefined
  const ownLine = keys.find(({ key_id: id }) => id === who.principal)?.line ?? who.principal
  const able = keys.filter(
    ({ line, scopes, agents, expires_at_ms: expiresAtMs }) =>
      line !== ownLine &&
      (expiresAtMs === null || expiresAtMs > nowMs) &&
      (scopes.includes('admin:*') || (zone === 'protected' && scopes.includes('proposals:decide'))) &&
      (agents.length === 0 || agents.some((pattern) => isNamed(agent, pattern))),
  )
  // The root key belongs to the line of no other key.
  const isRootAble = who.principal !== 'root'
  return {
    names: [...(isRootAble ? ['the root key'] : []), ...able.map(({ name }) => `“${escapeUnseen(name)}”`)],
    lines: new Set(able.map(({ line }) => line)).size + (isRootAble ? 1 : 0),
    needed: zone === 'immutable_core' ? 2 : 1,
  }
}

function isNamed(agent: string, pattern: string): boolean {
  return pattern.endsWith('*') ? agent.startsWith(pattern.slice(0, -1)) : agent === pattern
}
