import type { ServerInfoResponse } from '../../client/index.js'
import { Time } from '../parts/texts.js'

/** The nodes of a cluster: which of them serves, and how far behind the others are. */
export function ClusterMembers({ cluster }: { cluster: NonNullable<ServerInfoResponse['cluster']> }) {
  const name = 'Nodes of the cluster'
  return (
    <section>
      <h2>{name}</h2>
      <ul aria-label={name}>
        {cluster.members.map(({ node, address, serves_since_ms: since, lag_secs: lag }) => (
          <li key={node}>
            <strong>{node}</strong> at {address} {since === null ? 'stands by' : 'serves since '}
            {since !== null && <Time ms={since} />}
            {lag !== null && `, ${lag.toFixed(1)} s behind`}
          </li>
        ))}
      </ul>
    </section>
  )
}
