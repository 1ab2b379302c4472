import type { Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { EdgePlace, EdgeRow } from '../../../protocol/graph-messages.js'
import type { Outcome } from '../../../protocol/messages.js'
import type { Hlc } from '../../../strand/hlc.js'
import { unexpected } from '../answers.js'
import { reaches } from '../../../auth/namespace.js'
import type { RouteContext } from '../route.js'

/** A traversal that is asked for. */
export interface TraversalRequest {
  /** Where it starts. */
  agent: string
  depth: number
  edgeType?: string
  asOf?: Hlc
  /** The agents that the caller is limited to; no others are told. */
  reach: readonly string[]
}

/** What a traversal has found. */
export interface Traversal {
  /** The start, then agents in the order of their distance. */
  nodes: string[]
  /** Each with both of its ends among the nodes. */
  edges: EdgeRow[]
  truncated: boolean
}

/**
 * Walks outbound edges breadth first to a depth, over whatever shards the agents are in. It is bounded by what it looks
 * at, not by time: past a bound it ends, `truncated`, and what it tells is a part of the truth. The same graph is
 * always cut off at the same place. 404 agent_not_found.
 */
export async function traverse(
  request: TraversalRequest,
  context: Pick<RouteContext, 'ask'>,
): Promise<Traversal | Refusal> {
  const walk = new GraphWalk(request, context)
  let frontier = [request.agent]
  for (let depth = 0; depth < request.depth; depth++) {
    const next: string[] = []
    for (let from = 0; from < frontier.length && !walk.halted; from += limits.graphNodesAtOnce) {
      const refusal = await walk.expand(frontier.slice(from, from + limits.graphNodesAtOnce), next)
      if (refusal !== undefined) return refusal
    }
    frontier = next
  }
  return { nodes: [...walk.nodes], edges: walk.edges, truncated: walk.halted }
}

function isNobody(outcome: Outcome): boolean {
  return 'code' in outcome && outcome.code === 'agent_not_found'
}

class GraphWalk {
  readonly nodes: Set<string>
  readonly edges: EdgeRow[] = []
  /** A bound is reached, and there is more. */
  halted = false
  #looked = 0
  #chars = 0
  readonly #request: TraversalRequest
  readonly #context: Pick<RouteContext, 'ask'>

  constructor(request: TraversalRequest, context: Pick<RouteContext, 'ask'>) {
    this.nodes = new Set([request.agent])
    this.#request = request
    this.#context = context
  }

  /** Takes the edges of some nodes, in the order of the nodes; agents that are new are added to `next`. */
  async expand(nodes: readonly string[], next: string[]): Promise<Refusal | undefined> {
    if (this.#worn()) return undefined
    const firsts = await Promise.all(nodes.map((node) => this.#look(node, limits.graphFirstRows)))
    for (const [place, node] of nodes.entries()) {
      let part: Outcome | undefined = firsts[place]
      while (part !== undefined) {
        // An imported edge can lead to an agent that is not there.
        if (node !== this.#request.agent && isNobody(part)) break
        if (part.kind !== 'edges') return unexpected(part)
        this.#looked += part.looked
        this.#take(part.edges, next)
        const reached: EdgePlace | undefined = part.reached
        if (this.halted || (reached !== undefined && this.#worn())) return undefined
        // Most nodes are through by now; a hub goes on alone, so that what is looked at stays within the bound.
        part = reached === undefined ? undefined : await this.#look(node, limits.graphCallRowsMax, reached)
      }
    }
    return undefined
  }

  /** Whether enough rows were looked at, and so ends the walk. */
  #worn(): boolean {
    if (this.#looked >= limits.graphRowsMax) this.halted = true
    return this.halted
  }

  #look(node: string, rows: number, after?: EdgePlace): Promise<Outcome> {
    const { edgeType, asOf } = this.#request
    return this.#context.ask(node, {
      kind: 'edgeList',
      agent: node,
      direction: 'out',
      limit: rows,
      lookMax: rows,
      ...(edgeType !== undefined && { edgeType }),
      ...(asOf !== undefined && { asOf }),
      ...(after !== undefined && { after }),
    })
  }

  #take(edges: readonly EdgeRow[], next: string[]): void {
    for (const edge of edges) {
      const { dst } = edge
      if (!reaches(this.#request.reach, dst)) continue
      const isNew = !this.nodes.has(dst)
      const full = this.edges.length >= limits.graphEdgesMax || this.#chars >= limits.graphCharsMax
      if (full || (isNew && this.nodes.size >= limits.graphNodesMax)) {
        this.halted = true
        return
      }
      this.edges.push(edge)
      this.#chars += edge.src.length + dst.length + edge.edgeType.length
      if (!isNew) continue
      this.nodes.add(dst)
      next.push(dst)
    }
  }
}
