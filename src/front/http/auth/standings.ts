import { organismNamespace, rootNamespace } from '../../../auth/namespace.js'
import type { Clock } from '../../../base/clock.js'
import { statusOf, type Refusal } from '../../../base/errors.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import { KEY_SHARD } from './api-key-sync.js'
import { isExpired, type ApiKeys } from './api-keys.js'
import type { Standing } from '../../../protocol/proposal-messages.js'
import { unexpected } from '../../routes/answers.js'

interface Sources {
  clock: Clock
  shards: Pick<Shards, 'request' | 'requestShard' | 'leaseRefusal'>
  apiKeys: Pick<ApiKeys, 'isValid'>
  /** The default agent, whose shard stores the users outside organisms. */
  agentId: string
}

/**
 * Looks up the current permissions of keys and users that proposed or approved something
 * (docs/adr/0014-proposals.md). Returns the refusal of a shard that cannot answer now.
 */
export function standingsBy(
  agentId: string,
  parts: Omit<Sources, 'agentId'>,
): (principals: readonly string[]) => Promise<Standing[] | Refusal> {
  return async (principals) => {
    // Another node may have created or deleted keys that this node does not know about yet.
    const stale = principals.length === 0 ? undefined : parts.shards.leaseRefusal(KEY_SHARD)
    if (stale !== undefined) return stale
    const sources = { ...parts, agentId }
    const standings: Standing[] = []
    for (const found of await Promise.all(principals.map((one) => standingOf(one, sources)))) {
      if ('code' in found) return found
      standings.push(found)
    }
    return standings
  }
}

async function standingOf(principal: string, sources: Sources): Promise<Standing | Refusal> {
  const [, organism, userId] = /^user:([^:]*):(.+)$/.exec(principal) ?? []
  if (organism !== undefined && userId !== undefined)
    return standingOfUser({ principal, organism, userId }, sources)
  return standingOfKey(principal, sources)
}

/** An unknown key may just have been created at another node, so its shard decides. */
async function standingOfKey(principal: string, sources: Sources): Promise<Standing | Refusal> {
  const { clock, shards, apiKeys } = sources
  if (apiKeys.isValid(principal, clock())) return { principal, valid: true }
  const outcome = await shards.requestShard(KEY_SHARD, {
    kind: 'apiKeyList',
    after: '',
    limit: 1,
    keyId: principal,
  })
  if (outcome.kind !== 'apiKeys') return unexpected(outcome)
  return { principal, valid: outcome.rows.some((row) => !isExpired(row, clock())) }
}

async function standingOfUser(
  { principal, organism, userId }: { principal: string; organism: string; userId: string },
  { shards, agentId }: Sources,
): Promise<Standing | Refusal> {
  const namespace = organism === '' ? rootNamespace(agentId) : organismNamespace(organism)
  if (namespace === undefined) return { principal, valid: false }
  const { id, agent } = namespace
  const lookup = { kind: 'user', userId } as const
  const outcome = await shards.request(agent, { kind: 'authLookup', agent, namespace: id, lookup })
  const answer = outcome.kind === 'auth' ? outcome.answer : unexpected(outcome)
  if ('code' in answer) return statusOf(answer) === 404 ? { principal, valid: false } : answer
  if (answer.kind !== 'user') throw new Error(`Expected a user, got ${answer.kind}`)
  const { email, mailboxProven, appMetadata, userMetadata, reachedBy = [], metadataBy } = answer.user
  const proven = mailboxProven ? { verified_email: email } : {}
  const claims = { sub: userId, email, ...proven, app_metadata: appMetadata, user_metadata: userMetadata }
  const lineages = metadataBy === undefined ? reachedBy : [...reachedBy, metadataBy]
  return { principal, valid: true, claims, lineages: lineages }
}
