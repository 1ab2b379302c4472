import type { ServerInfoResponse } from '../../client/index.js'
import { Time } from '../parts/texts.js'

type Cluster = NonNullable<ServerInfoResponse['cluster']>

/** The nodes of a cluster: which shards each owns, of which it has copies, and how far these are behind. */
export function ClusterMembers({ cluster }: { cluster: Cluster }) {
  const name = 'Nodes of the cluster'
  return (
    <section>
      <h2>{name}</h2>
      <ul aria-label={name}>
        {cluster.members.map((member) => (
          <li key={member.node}>
            <strong>{member.node}</strong> at {member.address} <Doing member={member} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Doing({ member }: { member: Cluster['members'][number] }) {
  const { serves_since_ms: since, owned_shards: owned, held_shards: held, lag_secs: lag } = member
  const copies = held.length - owned.length
  const behind = lag === null ? '' : `, ${lag.toFixed(1)} s behind`
  const kept = copies === 0 ? behind : `, copies of ${copies}${behind}`
  if (since === null) return <>stands by{kept}</>
  return (
    <>
      serves {owned.length === 1 ? 'shard' : 'shards'} {owned.join(', ')} since <Time ms={since} />
      {kept}
    </>
  )
}
