import { limits } from '../../base/limits/limits.js'
import { isFlag, isNumber, isText, listOf, members, optional } from '../../base/shape.js'
import { clockWarning } from './clocks.js'
import type { Member, RowFault } from './member.js'

/** The report of a node, published with each heartbeat: hints for people and for placement. */
export interface NodeReport {
  /** The version and digest of its build; empty if it has not reported them yet. */
  version: string
  /** Where it accepts links: host and port. */
  link?: string | undefined
  owned?: readonly number[] | undefined
  /** Since when it has owned any, Unix milliseconds; absent while it owns none. */
  servesSinceMs?: number | undefined
  /** Shards that it owns, and those whose stores are up to date with their logs. */
  held?: readonly number[] | undefined
  /**
   * Age of the last point at which the followed stores had caught up with their logs, seconds; absent if it
   * owns all shards.
   */
  lagSecs?: number | undefined
  /** Whether it is up to date and linked to the others, so that it may own a share of the shards. */
  isReady?: boolean | undefined
  /** Whether its data disk is nearly full: it refuses writes, and others take its shards. */
  isFull?: boolean | undefined
  /** How far its clock is ahead of the database's, milliseconds. */
  clockAheadMs?: number | undefined
  /** Why it refuses to serve: a log has lost segments that it knows to be durable. */
  refuses?: string | undefined
}

/** Settings that must be equal on all nodes, because answers depend on them. By name. */
export type SharedSettings = Readonly<Record<string, string>>

const leaseName = 'SERVICE_CLUSTER_LEASE_SECS'
const emptyReport: NodeReport = { version: '' }

/** Encodes the report for a node's row. */
export function encodeReport(report: NodeReport): string {
  return JSON.stringify(report)
}

/** Decodes the report in a node's row. @returns a report with an empty version if the row has none */
export function decodeReport({ report: text }: Pick<Member, 'report'>): NodeReport {
  const report = parsed(text)
  return isReport(report) ? report : emptyReport
}

/** Encodes settings for a node's row. */
export function encodeSettings(leaseSecs: number, others: SharedSettings): string {
  return JSON.stringify({ [leaseName]: `${leaseSecs}`, ...others })
}

/** The lease that a node states, milliseconds; 0 if it states none. */
export function leaseMsOf(member: Pick<Member, 'settingsDigest'>): number {
  const secs = Number(settingsOf(member).get(leaseName) ?? 0)
  return Number.isFinite(secs) ? secs * 1_000 : 0
}

/** Builds and settings in which nodes differ: a sentence for each, without a full stop. */
export function differences(nodes: readonly Pick<Member, 'node' | 'settingsDigest' | 'report'>[]): string[] {
  const sorted = nodes.toSorted((one, other) => (one.node < other.node ? -1 : 1))
  return [...buildDifferences(sorted), ...settingDifferences(sorted)]
}

function buildDifferences(nodes: readonly Pick<Member, 'node' | 'report'>[]): string[] {
  const builds = nodes
    .map((member) => ({ node: member.node, version: decodeReport(member).version }))
    .filter(({ version }) => version !== '')
  if (new Set(builds.map(({ version }) => version)).size <= 1) return []
  const named = builds.map(({ node, version }) => `${node} ${version}`).join(', ')
  return [`Nodes run different builds, between which there are no links: ${named}`]
}

function settingDifferences(nodes: readonly Pick<Member, 'node' | 'settingsDigest'>[]): string[] {
  const each = nodes.map(({ node, settingsDigest }) => ({ node, settings: settingsOf({ settingsDigest }) }))
  const names = new Set(each.flatMap(({ settings }) => [...settings.keys()]))
  return [...names].sort().flatMap((name) => {
    const values = each.map(({ node, settings }) => ({ node, value: settings.get(name) ?? 'not set' }))
    const differ = values.some(({ value }) => value !== values[0]?.value)
    if (!differ) return []
    return [`Nodes differ in ${name}: ${values.map(({ node, value }) => `${node} ${value}`).join(', ')}`]
  })
}

/** What is wrong with live nodes, by their reports: a sentence for each, without a full stop. */
export function nodeProblems(nodes: readonly Pick<Member, 'node' | 'report'>[]): string[] {
  return nodes.flatMap((row) => {
    const { refuses, isFull, clockAheadMs } = decodeReport(row)
    const clock = clockWarning(clockAheadMs)
    return [
      ...(refuses === undefined ? [] : [`The node ${row.node} refuses to serve: ${refuses}`]),
      ...(isFull === true
        ? [`The data disk of the node ${row.node} is nearly full: other nodes take its shards`]
        : []),
      ...(clock === undefined ? [] : [`The clock of the node ${row.node} ${clock}`]),
    ]
  })
}

/**
 * Describes rejected rows of nodes: a sentence for each, without a full stop; the last one counts those left
 * out.
 */
export function describeFaults(faults: readonly RowFault[]): string[] {
  // An attacker with access to the table may write many rows, with names of any length.
  const named = faults.slice(0, limits.clusterFaultsNamed)
  const more = faults.length - named.length
  return [
    ...named.map(
      ({ node, reason }) => `The row of the node ${node.slice(0, limits.clusterNodeNameShown)} ${reason}`,
    ),
    ...(more === 0 ? [] : [`${more} more rows of nodes were rejected`]),
  ]
}

const isReport = members<NodeReport>({
  version: isText,
  link: optional(isText),
  servesSinceMs: optional(isNumber),
  lagSecs: optional(isNumber),
  owned: optional(listOf(isNumber)),
  held: optional(listOf(isNumber)),
  isReady: optional(isFlag),
  isFull: optional(isFlag),
  clockAheadMs: optional(isNumber),
  refuses: optional(isText),
})

function settingsOf({ settingsDigest }: Pick<Member, 'settingsDigest'>): Map<string, string> {
  const settings = parsed(settingsDigest)
  if (typeof settings !== 'object' || settings === null) return new Map()
  return new Map(Object.entries(settings).map(([name, value]) => [name, String(value)]))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
