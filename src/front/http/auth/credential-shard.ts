import type { Shards } from '../../../dispatch/links/shards.js'
import type { Principal } from '../../routes/route.js'
import { KEY_SHARD } from './api-key-upkeep.js'

/** Whether who is admitted is known by the settings alone. */
export function isOfSettingsAlone({ key, user }: Principal): boolean {
  return key === undefined && user === undefined
}

/** The shard that says whether the credential of somebody is in force, and tells of its end. */
export function shardOfCredential({ user }: Principal, shards: Pick<Shards, 'shardOf'>): number {
  return user === undefined ? KEY_SHARD : shards.shardOf(user.namespace.agent)
}

/** Whether it is not known any more if the credential of somebody is in force: its shard is away, and not only moving. */
export function isUnknown(principal: Principal, shards: Pick<Shards, 'shardOf' | 'lastingRefusal'>): boolean {
  if (isOfSettingsAlone(principal)) return false
  return shards.lastingRefusal(shardOfCredential(principal, shards)) !== undefined
}
