import type { EdgePage, ServiceClient } from '../../../client/index.js'
import { cursorsType, useAddress } from '../../parts/address.js'
import { CardTable, CursorPages } from '../../parts/card-table.js'
import { isoOf } from '../../parts/format.js'
import { Read, useLoaded } from '../../parts/load.js'
import { Empty } from '../../parts/texts.js'
import { agentLink } from '../../route.js'

const PAGE_EDGES = 50

export interface EdgeFilter {
  /** Empty for all. */
  type: string
  /** The point in time in Unix milliseconds; undefined for now. */
  asOfMs: number | undefined
}

/** The query parameters of a filter. */
export function optionsOf({ type, asOfMs }: EdgeFilter): { edge_type?: string; as_of?: string } {
  return { ...(type !== '' && { edge_type: type }), ...(asOfMs !== undefined && { as_of: isoOf(asOfMs) }) }
}

/** The outgoing or incoming edges of an agent. */
export function EdgeTable(props: {
  service: ServiceClient
  agent: string
  direction: 'out' | 'in'
  filter: EdgeFilter
  /** A new value reads the edges again. */
  revision: number
}) {
  const { service, agent, direction, filter, revision } = props
  const [cursors, setCursors] = useAddress(direction, cursorsType)
  const cursor = cursors.at(-1)
  const read = useLoaded<EdgePage>(`${cursor ?? ''} ${revision}`, (signal) => {
    const page = { direction, limit: PAGE_EDGES, cursor, signal }
    return service.graph.edgePage(agent, { ...page, ...optionsOf(filter) })
  })
  const isOut = direction === 'out'
  const name = isOut ? `Edges from ${agent}` : `Edges to ${agent}`
  return (
    <section class="edges">
      <h2>{isOut ? 'Outgoing edges' : 'Incoming edges'}</h2>
      <Read of={read} what="edges">
        {({ edges }) =>
          edges.length === 0 ? (
            cursor === undefined && <NoEdges isOut={isOut} filter={filter} />
          ) : (
            <CardTable
              name={name}
              rows={edges}
              keyOf={({ src, edge_type: type, dst }) => `${src} ${type} ${dst}`}
              long={['Agent', 'Type']}
              head={['Agent', ({ src, dst }) => <AgentLink agent={isOut ? dst : src} />]}
              numbers={['Weight']}
              cells={{
                Type: ({ edge_type: type }) => <code>{type}</code>,
                Weight: ({ weight }) => weight,
              }}
            />
          )
        }
      </Read>
      <CursorPages cursors={cursors} set={setCursors} next={read.loaded.value?.next_cursor} />
    </section>
  )
}

function AgentLink({ agent }: { agent: string }) {
  return <a href={agentLink(agent, 'graph')}>{agent}</a>
}

function NoEdges({ isOut, filter: { type, asOfMs } }: { isOut: boolean; filter: EdgeFilter }) {
  const title = isOut ? 'No outgoing edges' : 'No incoming edges'
  if (type !== '' || asOfMs !== undefined)
    return <Empty title={title}>Try another type or another time.</Empty>
  return (
    <Empty title={title}>
      Edges are relations between agents. A program adds an edge with <code>POST /v1/graph/edges</code>; the
      edge is a signed record of its source agent.
    </Empty>
  )
}
