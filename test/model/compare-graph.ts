import { checkedCall } from '../support/http/answers.js'
import { agree } from './matching.js'
import { momentOf } from './moments.js'
import { pagesOf, refusedFor } from './pages.js'
import type { ReadOf } from './reads.js'
import type { Session } from './session.js'
import { chainAt, compareTexts, inOrder, viewOf, type Edge } from './strand.js'
import type { World } from './world.js'

/** All edges as of a moment, or now. */
function edgesOf(world: World, moment: string | undefined): Edge[] {
  return [...world.chains.values()].flatMap((chain) => {
    const past = moment === undefined ? chain : chainAt(chain, moment)
    return past.length === 0 ? [] : [...viewOf(past).edges.values()]
  })
}

interface EdgeSelection {
  edgeType: string | undefined
  asOf: ReadOf<'edges'>['asOf']
  by: string
}

/** The edges of a filter that the caller can see, and the query parameters of the filter. */
function filtered(session: Session, { edgeType, asOf, by }: EdgeSelection) {
  const moment = asOf === undefined ? undefined : momentOf(session.world, asOf)
  const { reach } = session.actor(by)
  const edges = edgesOf(session.world, moment?.last).filter(
    (edge) =>
      (edgeType ?? edge.edge_type) === edge.edge_type &&
      edge.src.startsWith(reach) &&
      edge.dst.startsWith(reach),
  )
  const query: Record<string, string> = {
    ...(edgeType !== undefined && { edge_type: edgeType }),
    ...(moment !== undefined && { as_of: moment.text }),
  }
  return { edges, query }
}

/** Compares all pages of the edges of an agent. */
export async function agreeOnEdges(session: Session, read: ReadOf<'edges'>): Promise<void> {
  const { agent, by, direction, limit } = read
  const { edges, query } = filtered(session, read)
  const { key } = session.actor(by)
  const path = (more: Record<string, string>) =>
    `GET /v1/graph/edges/${agent}?${new URLSearchParams({ direction, ...query, ...more })}`
  const answer = await checkedCall(session.server, path({}), { key })
  if (refusedFor(session, { agent, by }, { route: path({}), answer })) return
  const [here, there] = direction === 'out' ? (['src', 'dst'] as const) : (['dst', 'src'] as const)
  const expected = inOrder(
    edges.filter((edge) => edge[here] === agent),
    there,
  )
  const found = await pagesOf(limit, async (more) => {
    const { body } = await checkedCall(session.server, path(more), { key })
    return { rows: body.edges, next: body.next_cursor }
  })
  agree(path({}), expected, found)
}

/** Compares a traversal of outbound edges. */
export async function agreeOnTraversal(session: Session, read: ReadOf<'traversal'>): Promise<void> {
  const { agent, by, depth } = read
  const { edges, query } = filtered(session, read)
  const route = `GET /v1/graph/traverse/${agent}?${new URLSearchParams({ depth: String(depth), ...query })}`
  const answer = await checkedCall(session.server, route, { key: session.actor(by).key })
  if (refusedFor(session, { agent, by }, { route, answer })) return
  const distances = new Map([[agent, 0]])
  const walked = new Set<Edge>()
  for (let step = 0; step < depth; step++) {
    for (const edge of edges) {
      if (distances.get(edge.src) !== step) continue
      walked.add(edge)
      if (!distances.has(edge.dst)) distances.set(edge.dst, step + 1)
    }
  }
  const {
    nodes,
    edges: found,
    truncated,
  }: { nodes: string[]; edges: Edge[]; truncated: boolean } = answer.body
  agree(`${route}: nodes`, [...distances.keys()].sort(compareTexts), [...nodes].sort(compareTexts))
  const order = nodes.map((node) => distances.get(node) ?? 0)
  agree(`${route}: the order of the nodes`, [...order].sort(), order)
  const byText = (all: Iterable<Edge>) => inOrder(inOrder(all, 'dst'), 'src')
  agree(`${route}: edges`, byText(walked), byText(found))
  agree(`${route}: truncated`, false, truncated)
}
