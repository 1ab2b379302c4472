import { type Bare, changeCall, dated, momentText, pagesOf, readCall } from './collection.js'
import { type SendJson, pathSegment } from './http.js'
import type {
  CallOptions,
  ChangeOptions,
  EdgeAddedResponse,
  EdgePage,
  EdgeRemovedResponse,
  GraphEdge,
  Moment,
  EdgeBody,
  Proposed,
  TraversalResult,
} from './types.js'
import { jsonText } from './json-text.js'

/** Selects the edges to return. */
export interface EdgeOptions extends CallOptions {
  /** Only edges of this type. */
  edge_type?: string | undefined
  /** The edges as of this moment. */
  as_of?: Moment | undefined
}

/** Selects the page of edges to return. */
export interface EdgePageOptions extends EdgeOptions {
  /** `out` by default. */
  direction?: 'out' | 'in' | undefined
  /** Edges of one page, at most 1,000; 100 by default. */
  limit?: number | undefined
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined
}

/** How far a traversal goes. */
export interface TraverseOptions extends EdgeOptions {
  /** Steps, 1 to 3; 1 by default. */
  depth?: number | undefined
}

const PATH = '/v1/graph'
const PAGE_ROWS = 1_000

/**
 * Typed, directed edges between agents (docs/adr/0018-graph.md). The service does not accept users' tokens
 * for edges: calls carry the client's API key, if it has one. Methods reject as those of the client do.
 */
export class GraphClient {
  readonly #send: SendJson

  constructor(send: SendJson) {
    this.#send = send
  }

  /** Adds an edge. Errors: 404 `agent_not_found` for either end. */
  // An edge has these four parts.
  // oxlint-disable-next-line max-params
  relate(src: string, dst: string, edgeType: string, weight = 1): Promise<EdgeAddedResponse> {
    return this.addEdge({ src, dst, edge_type: edgeType, weight })
  }

  /**
   * Adds an edge, or sets the weight of an existing one; 1 by default. Errors: 404 `agent_not_found` for
   * either end.
   */
  async addEdge(edge: EdgeBody, options: ChangeOptions = {}): Promise<EdgeAddedResponse> {
    const call = changeCall(`${PATH}/edges`, jsonText(edge), options)
    return dated(await this.#send<Bare<EdgeAddedResponse>>(call))
  }

  /** All edges from an agent, by type and then by the other agent. */
  edges(agentId: string, options: EdgeOptions = {}): Promise<GraphEdge[]> {
    return this.#all(agentId, { ...options, direction: 'out' })
  }

  /** All edges to an agent, by type and then by the other agent. */
  inboundEdges(agentId: string, options: EdgeOptions = {}): Promise<GraphEdge[]> {
    return this.#all(agentId, { ...options, direction: 'in' })
  }

  /** One page of the edges of an agent. */
  edgePage(agentId: string, options: EdgePageOptions = {}): Promise<EdgePage> {
    const { direction, limit, cursor } = options
    return this.#send(
      readCall(`${PATH}/edges/${pathSegment(agentId)}`, options, {
        direction,
        limit,
        cursor,
        ...filterOf(options),
      }),
    )
  }

  /**
   * The agents that can be reached over outbound edges; `truncated` if there are more than the limit of the
   * service.
   */
  traverse(agentId: string, options: TraverseOptions = {}): Promise<TraversalResult> {
    return this.#send(
      readCall(`${PATH}/traverse/${pathSegment(agentId)}`, options, {
        depth: options.depth,
        ...filterOf(options),
      }),
    )
  }

  /**
   * Removes an edge; the zone of its source decides whether immediately or by a proposal. Errors: 404
   * `edge_not_found`, 403 `zone_immutable`
   */
  // These three identify an edge, and every change has options.
  // oxlint-disable-next-line max-params
  async removeEdge(
    src: string,
    edgeType: string,
    dst: string,
    options: ChangeOptions = {},
  ): Promise<EdgeRemovedResponse | Proposed> {
    const call = changeCall(`${PATH}/edges`, undefined, options)
    const query = { src, edge_type: edgeType, dst }
    const answer = await this.#send<Bare<EdgeRemovedResponse> | Proposed>({
      ...call,
      method: 'DELETE',
      query,
    })
    return 'removed' in answer ? dated(answer) : answer
  }

  async #all(agentId: string, options: EdgePageOptions): Promise<GraphEdge[]> {
    const edges: GraphEdge[] = []
    const read = (cursor?: string) => this.edgePage(agentId, { ...options, limit: PAGE_ROWS, cursor })
    for await (const page of pagesOf(read)) edges.push(...page.edges)
    return edges
  }
}

function filterOf({ edge_type, as_of }: EdgeOptions): { edge_type?: string; as_of?: string } {
  return {
    ...(edge_type !== undefined && { edge_type }),
    ...(as_of !== undefined && { as_of: momentText(as_of) }),
  }
}
