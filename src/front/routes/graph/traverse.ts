import type { Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { EdgeCursor, EdgeRow } from '../../../protocol/graph-messages.js'
import type { Outcome } from '../../../protocol/messages.js'
import type { Hlc } from '../../../strand/hlc.js'
import { unexpected } from '../answers.js'
import { reachesStrand } from '../parameters.js'
import type { Principal, RouteContext } from '../route.js'

export interface TraversalRequest {
  agent: string
  depth: number
  edgeType?: string
  asOf?: Hlc
  /** The caller; agents that it does not reach are left out. */
  principal: Principal
}

export interface Traversal {
  /** The start, then agents by distance. */
  nodes: string[]
  /** Edges between the nodes. */
  edges: EdgeRow[]
  truncated: boolean
}

/**
 * Walks outbound edges breadth-first to a depth, across all shards. It is limited by the number of examined
 * rows, not by time: beyond a limit it ends with `truncated` and a partial result. The same graph is always
 * truncated at the same point. 404 agent_not_found.
 */
export async function traverse(
  request: TraversalRequest,
  context: Pick<RouteContext, 'request'>,
): Promise<Traversal | Refusal> {
  const walk = new GraphWalk(request, context)
  let frontier = [request.agent]
  for (let depth = 0; depth < request.depth; depth++) {
    const next: string[] = []
    for (let from = 0; from < frontier.length && !walk.halted; from += limits.graphNodesInFlightMax) {
      const refusal = await walk.expand(frontier.slice(from, from + limits.graphNodesInFlightMax), next)
      if (refusal !== undefined) return refusal
    }
    frontier = next
  }
  return { nodes: [...walk.nodes], edges: walk.edges, truncated: walk.halted }
}

function isAgentNotFound(outcome: Outcome): boolean {
  return 'code' in outcome && outcome.code === 'agent_not_found'
}

class GraphWalk {
  readonly nodes: Set<string>
  readonly edges: EdgeRow[] = []
  /** A limit was reached before the end. */
  halted = false
  #examinedRows = 0
  #chars = 0
  readonly #request: TraversalRequest
  readonly #context: Pick<RouteContext, 'request'>

  constructor(request: TraversalRequest, context: Pick<RouteContext, 'request'>) {
    this.nodes = new Set([request.agent])
    this.#request = request
    this.#context = context
  }

  /** Adds the edges of some nodes, in order; newly found agents are added to `next`. */
  async expand(nodes: readonly string[], next: string[]): Promise<Refusal | undefined> {
    if (this.#checkLimit()) return undefined
    const firsts = await Promise.all(nodes.map((node) => this.#readEdges(node, limits.graphFirstRows)))
    for (const [index, node] of nodes.entries()) {
      let part: Outcome | undefined = firsts[index]
      while (part !== undefined) {
        // An imported edge can lead to an agent that does not exist.
        if (node !== this.#request.agent && isAgentNotFound(part)) break
        if (part.kind !== 'edges') return unexpected(part)
        this.#examinedRows += part.looked
        this.#addEdges(part.edges, next)
        const reached: EdgeCursor | undefined = part.reached
        if (this.halted || (reached !== undefined && this.#checkLimit())) return undefined
        // Most nodes are finished by now; a node with many edges continues alone, so that the examined rows
        // stay within the limit.
        part =
          reached === undefined ? undefined : await this.#readEdges(node, limits.graphCallRowsMax, reached)
      }
    }
    return undefined
  }

  /** Halts the walk if enough rows were examined. @returns whether it is halted */
  #checkLimit(): boolean {
    if (this.#examinedRows >= limits.graphRowsMax) this.halted = true
    return this.halted
  }

  #readEdges(node: string, rows: number, after?: EdgeCursor): Promise<Outcome> {
    const { edgeType, asOf } = this.#request
    return this.#context.request(node, {
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

  #addEdges(edges: readonly EdgeRow[], next: string[]): void {
    for (const edge of edges) {
      const { dst } = edge
      if (!reachesStrand(this.#request.principal, dst)) continue
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
