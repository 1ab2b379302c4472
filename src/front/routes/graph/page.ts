import type { Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { EdgeList, EdgePlace, EdgeRow, EdgesOutcome } from '../../../protocol/graph-messages.js'
import { unexpected } from '../answers.js'
import { reaches } from '../../../auth/namespace.js'
import type { RouteContext } from '../route.js'

/** A page of edges that is asked for. */
export interface EdgePageRequest extends Omit<EdgeList, 'kind' | 'lookMax'> {
  /** The agents that the caller is limited to; no others are told. */
  reach: readonly string[]
}

/** Rounds of calls that a page goes through before it answers with what it has and a cursor. */
const ROUNDS_MAX = 16

/** One page: full, at the end, or with a place to go on from because enough was looked at. */
export async function edgePage(
  { reach, ...list }: EdgePageRequest,
  context: Pick<RouteContext, 'ask' | 'askAll'>,
): Promise<{ edges: EdgeRow[]; next?: EdgePlace } | Refusal> {
  const edges: EdgeRow[] = []
  let next = list.after
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const part = await nextPart({ ...list, ...(next !== undefined && { after: next }) }, context)
    if ('code' in part) return part
    for (const edge of part.edges) {
      const { other } = placeOf(edge, list.direction)
      if (!reaches(reach, other)) continue
      const last = edges.at(-1)
      if (edges.length === list.limit && last !== undefined) {
        return { edges, next: placeOf(last, list.direction) }
      }
      edges.push(edge)
    }
    if (part.reached === undefined) return { edges }
    next = part.reached
  }
  return next === undefined ? { edges } : { edges, next }
}

/**
 * The next edges in order, none left out up to `reached`. Inbound edges lie with their sources, in every shard: where
 * one has more to tell, nothing behind its last place is known to be whole.
 */
async function nextPart(
  list: Omit<EdgeList, 'kind' | 'lookMax'>,
  context: Pick<RouteContext, 'ask' | 'askAll'>,
): Promise<Pick<EdgesOutcome, 'edges' | 'reached'> | Refusal> {
  const command: EdgeList = { kind: 'edgeList', ...list, lookMax: limits.graphCallRowsMax }
  const outcomes =
    list.direction === 'out' ? [await context.ask(list.agent, command)] : await context.askAll(command)
  const edges: EdgeRow[] = []
  let reached: EdgePlace | undefined
  for (const outcome of outcomes) {
    if (outcome.kind !== 'edges') return unexpected(outcome)
    edges.push(...outcome.edges)
    if (outcome.reached === undefined) continue
    if (reached === undefined || inOrder(outcome.reached, reached) < 0) reached = outcome.reached
  }
  const known = reached
  const whole =
    known === undefined ? edges : edges.filter((edge) => inOrder(placeOf(edge, list.direction), known) <= 0)
  whole.sort((left, right) => inOrder(placeOf(left, list.direction), placeOf(right, list.direction)))
  return { edges: whole, ...(reached !== undefined && { reached }) }
}

function placeOf({ src, dst, edgeType }: EdgeRow, direction: 'out' | 'in'): EdgePlace {
  return { edgeType, other: direction === 'out' ? dst : src }
}

/** The order of the shards' keys: types, then names, both ASCII. */
function inOrder(left: EdgePlace, right: EdgePlace): number {
  const [one, two] =
    left.edgeType === right.edgeType ? [left.other, right.other] : [left.edgeType, right.edgeType]
  if (one === two) return 0
  return one < two ? -1 : 1
}
