import { useState } from 'preact/hooks'
import type { EdgePageResponse, GraphEdge, ServiceClient } from '../../../client/index.js'
import { CardCell, CardRow, CardTable } from '../../parts/card-table.js'
import { useLoaded } from '../../parts/load.js'
import { CursorPages } from '../../parts/pages.js'
import { Empty, Failure, Loading } from '../../parts/texts.js'
import { isoOf } from '../records/filter.js'
import { agentLink } from '../../route.js'

const PAGE_EDGES = 50

/** Which edges are shown. */
export interface EdgeFilter {
  /** Empty for all. */
  type: string
  /** As of when, in Unix milliseconds; undefined for now. */
  asOfMs: number | undefined
}

/** What a filter asks for. */
export function optionsOf({ type, asOfMs }: EdgeFilter): { edge_type?: string; as_of?: string } {
  return { ...(type !== '' && { edge_type: type }), ...(asOfMs !== undefined && { as_of: isoOf(asOfMs) }) }
}

/** The edges that lead from an agent, or to it. */
export function EdgeTable(props: {
  service: ServiceClient
  agent: string
  direction: 'out' | 'in'
  filter: EdgeFilter
  turn: number
}) {
  const { service, agent, direction, filter, turn } = props
  const [cursors, setCursors] = useState<string[]>([])
  const cursor = cursors.at(-1)
  const { loaded, reload } = useLoaded<EdgePageResponse>(`${cursor ?? ''} ${turn}`, (signal) => {
    const page = { direction, limit: PAGE_EDGES, cursor, signal }
    return service.graph.edgePage(agent, { ...page, ...optionsOf(filter) })
  })
  const isOut = direction === 'out'
  const name = isOut ? `Edges from ${agent}` : `Edges to ${agent}`
  const edges = loaded.value?.edges
  return (
    <section class="edges">
      <h2>{isOut ? 'Leads to' : 'Comes from'}</h2>
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      {edges === undefined && loaded.kind === 'loading' && <Loading what="edges" />}
      {edges?.length === 0 && cursor === undefined && <NoEdges isOut={isOut} filter={filter} />}
      {edges !== undefined && edges.length > 0 && (
        <CardTable name={name} columns={['Agent', 'Type', { name: 'Weight', look: 'number' }]}>
          {edges.map((edge) => (
            <Row key={`${edge.src} ${edge.edge_type} ${edge.dst}`} edge={edge} isOut={isOut} />
          ))}
        </CardTable>
      )}
      <CursorPages cursors={cursors} set={setCursors} next={loaded.value?.next_cursor} />
    </section>
  )
}

function Row({ edge: { src, dst, edge_type: type, weight }, isOut }: { edge: GraphEdge; isOut: boolean }) {
  const other = isOut ? dst : src
  return (
    <CardRow head={<a href={agentLink(other, 'graph')}>{other}</a>}>
      <CardCell name="Type">
        <code>{type}</code>
      </CardCell>
      <CardCell name="Weight" isNumber>
        {weight}
      </CardCell>
    </CardRow>
  )
}

function NoEdges({ isOut, filter: { type, asOfMs } }: { isOut: boolean; filter: EdgeFilter }) {
  const title = isOut ? 'No edge leads from this agent' : 'No edge leads to this agent'
  if (type !== '' || asOfMs !== undefined)
    return <Empty title={title}>Look at another type, or at another moment.</Empty>
  return (
    <Empty title={title}>
      Edges say how agents belong together. A program adds one with <code>POST /v1/graph/edges</code>; it is a
      signed record of the agent that it leads from.
    </Empty>
  )
}
