import type { Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { EdgeList, EdgeCursor, EdgeRow, EdgesOutcome } from '../../../protocol/graph-messages.js'
import { unexpected } from '../answers.js'
import { reachesStrand } from '../parameters.js'
import type { Principal, RouteContext } from '../route.js'

export interface EdgePageRequest extends Omit<EdgeList, 'kind' | 'lookMax'> {
  /** The caller; edges to agents that it does not reach are left out. */
  principal: Principal
}

/** The most rounds of calls for a page; after that it is returned as it is, with a cursor. */
const ROUNDS_MAX = 16

/** Reads a page: it is full, reaches the end, or has a cursor because enough rows were examined. */
export async function edgePage(
  { principal, ...list }: EdgePageRequest,
  context: Pick<RouteContext, 'request' | 'requestAll'>,
): Promise<{ edges: EdgeRow[]; next?: EdgeCursor } | Refusal> {
  const edges: EdgeRow[] = []
  let next = list.after
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const part = await nextPart({ ...list, ...(next !== undefined && { after: next }) }, context)
    if ('code' in part) return part
    for (const edge of part.edges) {
      const { other } = cursorOf(edge, list.direction)
      if (!reachesStrand(principal, other)) continue
      const last = edges.at(-1)
      if (edges.length === list.limit && last !== undefined) {
        return { edges, next: cursorOf(last, list.direction) }
      }
      edges.push(edge)
    }
    if (part.reached === undefined) return { edges }
    next = part.reached
  }
  return next === undefined ? { edges } : { edges, next }
}

/**
 * The next edges in order, complete up to `reached`. Inbound edges are stored with their sources, in every
 * shard: if a shard has more edges, edges after its last position may be missing.
 */
async function nextPart(
  list: Omit<EdgeList, 'kind' | 'lookMax'>,
  context: Pick<RouteContext, 'request' | 'requestAll'>,
): Promise<Pick<EdgesOutcome, 'edges' | 'reached'> | Refusal> {
  const command: EdgeList = { kind: 'edgeList', ...list, lookMax: limits.graphCallRowsMax }
  const outcomes =
    list.direction === 'out'
      ? [await context.request(list.agent, command)]
      : await context.requestAll(command)
  const edges: EdgeRow[] = []
  let reached: EdgeCursor | undefined
  for (const outcome of outcomes) {
    if (outcome.kind !== 'edges') return unexpected(outcome)
    edges.push(...outcome.edges)
    if (outcome.reached === undefined) continue
    if (reached === undefined || compareCursors(outcome.reached, reached) < 0) reached = outcome.reached
  }
  const completeUntil = reached
  const complete =
    completeUntil === undefined
      ? edges
      : edges.filter((edge) => compareCursors(cursorOf(edge, list.direction), completeUntil) <= 0)
  complete.sort((left, right) =>
    compareCursors(cursorOf(left, list.direction), cursorOf(right, list.direction)),
  )
  return { edges: complete, ...(reached !== undefined && { reached }) }
}

function cursorOf({ src, dst, edgeType }: EdgeRow, direction: 'out' | 'in'): EdgeCursor {
  return { edgeType, other: direction === 'out' ? dst : src }
}

/** The order of the keys in the shards: by type, then by name, both ASCII. */
function compareCursors(left: EdgeCursor, right: EdgeCursor): number {
  const [first, second] =
    left.edgeType === right.edgeType ? [left.other, right.other] : [left.edgeType, right.edgeType]
  if (first === second) return 0
  return first < second ? -1 : 1
}
