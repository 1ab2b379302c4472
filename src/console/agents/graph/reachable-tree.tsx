import { useState } from 'preact/hooks'
import type { ServiceClient, TraversalResult } from '../../../client/index.js'
import { choiceType, useAddress } from '../../parts/address.js'
import { countText, counted } from '../../parts/format.js'
import { useLoaded } from '../../parts/load.js'
import { Button, Failure, Loading } from '../../parts/texts.js'
import { agentLink } from '../../route.js'
import { type EdgeFilter, optionsOf } from './edge-table.js'
import { type Branch, firstOf, treeOf } from './tree.js'

const SHOWN_BRANCHES = 300
const depths = ['2', '1', '3'] as const
const stepsType = choiceType(depths)

/** The agents reachable from an agent in up to three steps, as a tree. */
export function ReachableTree(props: {
  service: ServiceClient
  agent: string
  filter: EdgeFilter
  /** A new value reads the tree again. */
  revision: number
}) {
  const { service, agent, filter, revision } = props
  const [depth, setDepth] = useAddress('steps', stepsType)
  const [most, setMost] = useState(SHOWN_BRANCHES)
  const { loaded, reload } = useLoaded<TraversalResult>(`${depth} ${revision}`, (signal) =>
    service.graph.traverse(agent, { depth: Number(depth), signal, ...optionsOf(filter) }),
  )
  const found = loaded.value
  return (
    <section class="edges" aria-label={`Reachable from ${agent}`}>
      <h2>Reachable agents</h2>
      <div class="tools">
        <label class="field">
          Steps
          <select
            value={depth}
            onChange={(event) => {
              setMost(SHOWN_BRANCHES)
              setDepth(stepsType.read([event.currentTarget.value]))
            }}
          >
            {depths.toSorted().map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        {found !== undefined && (
          <p role="status" class="muted">
            {counted(found.nodes.length - 1, 'other agent')} by {counted(found.edges.length, 'edge')}
          </p>
        )}
      </div>
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      {found === undefined && loaded.kind === 'loading' && <Loading what="the reachable agents" />}
      {found?.truncated === true && (
        <p class="notice warn">
          The result is incomplete: it exceeds the server’s limit for one traversal. Choose fewer steps, or
          one edge type.
        </p>
      )}
      {found !== undefined && found.edges.length > 0 && (
        <nav class="tree" aria-label={`Tree from ${agent}`}>
          <strong>{agent}</strong>
          <Branches branches={firstOf(treeOf(agent, found.edges), most)} />
        </nav>
      )}
      {found !== undefined && found.edges.length > most && (
        <p class="muted">
          The first {countText(most)} edges.{' '}
          <Button text="Show more" onClick={() => setMost(most + SHOWN_BRANCHES)} />
        </p>
      )}
    </section>
  )
}

function Branches({ branches }: { branches: readonly Branch[] }) {
  return (
    <ul>
      {branches.map(({ edge: { edge_type: type, dst, weight }, isElsewhere, branches: further }) => (
        <li key={`${type} ${dst}`}>
          <code class="member">{type}</code> → <a href={agentLink(dst, 'graph')}>{dst}</a>{' '}
          <span class="muted">
            {weight !== 1 && `weight ${weight} `}
            {isElsewhere && '(already in this tree)'}
          </span>
          {further.length > 0 && <Branches branches={further} />}
        </li>
      ))}
    </ul>
  )
}
