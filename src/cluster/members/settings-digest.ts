import { limits } from '../../base/limits/limits.js'
import { isFlag, isNumber, isText, listOf, members, optional } from '../../base/shape.js'
import type { Member, RowFault } from './membership.js'

/** What a node tells of itself with each beat, for people. */
export interface NodeTold {
  version: string
  /** Where it takes links of other nodes, a host and a port. */
  link?: string | undefined
  /** Numbers of the shards that it owns. */
  owned?: readonly number[] | undefined
  /** Since when it owns any, Unix milliseconds; absent while it owns none. */
  servesSinceMs?: number | undefined
  /** Those, and the ones whose stores it has up to their logs. */
  held?: readonly number[] | undefined
  /** How long ago it had all that the logs of the shards that it follows had, seconds; absent where it owns all. */
  lagSecs?: number | undefined
  /** Whether it is up to the logs and reaches the others, so that it may own a share of the shards. */
  isReady?: boolean | undefined
  /** Why it serves nothing: a log lacks what it knows to be durable. */
  refuses?: string | undefined
}

/** Settings that have to be alike on all nodes, by their names: what a request leads to depends on them. */
export type AlikeSettings = Readonly<Record<string, string>>

const leaseName = 'SERVICE_CLUSTER_LEASE_SECS'
const nothing: NodeTold = { version: '' }

/** The text of it in a node's row. */
export function tellOwn(told: NodeTold): string {
  return JSON.stringify(told)
}

/** @returns an empty version where the row has something else */
export function readTold({ owns }: Pick<Member, 'owns'>): NodeTold {
  const told = parsed(owns)
  return isTold(told) ? told : nothing
}

/** The text of settings in a node's row. */
export function tellSettings(leaseSecs: number, others: AlikeSettings): string {
  return JSON.stringify({ [leaseName]: `${leaseSecs}`, ...others })
}

/** What a node says of its lease, milliseconds; 0 where it says nothing. */
export function leaseMsOf(member: Pick<Member, 'settingsDigest'>): number {
  const secs = Number(settingsOf(member).get(leaseName) ?? 0)
  return Number.isFinite(secs) ? secs * 1_000 : 0
}

/** In which settings nodes differ: a sentence for each, without a full stop. */
export function differences(nodes: readonly Pick<Member, 'node' | 'settingsDigest'>[]): string[] {
  const each = nodes
    .map(({ node, settingsDigest }) => ({ node, settings: settingsOf({ settingsDigest }) }))
    .sort((one, other) => (one.node < other.node ? -1 : 1))
  const names = new Set(each.flatMap(({ settings }) => [...settings.keys()]))
  return [...names].sort().flatMap((name) => {
    const values = each.map(({ node, settings }) => ({ node, value: settings.get(name) ?? 'not told' }))
    const differ = values.some(({ value }) => value !== values[0]?.value)
    if (!differ) return []
    return [`Nodes differ in ${name}: ${values.map(({ node, value }) => `${node} ${value}`).join(', ')}`]
  })
}

/** What is wrong with rows of nodes: a sentence each, without a full stop; the last one counts those that are left out. */
export function describeFaults(faults: readonly RowFault[]): string[] {
  // Whoever writes to the table may write many, with names of any length.
  const named = faults.slice(0, limits.clusterFaultsNamed)
  const more = faults.length - named.length
  return [
    ...named.map(
      ({ node, reason }) => `The row of the node ${node.slice(0, limits.clusterNodeNameShown)} ${reason}`,
    ),
    ...(more === 0 ? [] : [`${more} more rows of nodes are not believed`]),
  ]
}

const isTold = members<NodeTold>({
  version: isText,
  link: optional(isText),
  servesSinceMs: optional(isNumber),
  lagSecs: optional(isNumber),
  owned: optional(listOf(isNumber)),
  held: optional(listOf(isNumber)),
  isReady: optional(isFlag),
  refuses: optional(isText),
})

function settingsOf({ settingsDigest }: Pick<Member, 'settingsDigest'>): Map<string, string> {
  const told = parsed(settingsDigest)
  if (typeof told !== 'object' || told === null) return new Map()
  return new Map(Object.entries(told).map(([name, value]) => [name, String(value)]))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
