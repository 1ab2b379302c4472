import type { AgentStatusResponse, Proposal } from '../../../client/index.js'
import { useLoaded } from '../../parts/load.js'
import { Failure } from '../../parts/texts.js'
import { type SignedIn, may } from '../../parts/session.js'
import { readDeciding } from './approvers.js'
import { KeySection } from './key-section.js'
import { Rule } from './rule.js'
import { ZoneSection } from './zone-section.js'

const PROPOSALS_MAX = 1_000

/** Changes of an agent itself: its zone and its key, each with what will happen before it does. */
export function AgentTab(props: { session: SignedIn; status: AgentStatusResponse; reload: () => void }) {
  const { session, status, reload } = props
  const { agent_id: agent, timestamp_hlc: hlc } = status
  const deciding = useLoaded('', (signal) => readDeciding(session, signal))
  const waiting = useLoaded(hlc, (signal) => readWaiting(session, agent, signal))
  // No organism can have this id.
  if (agent.startsWith('server::'))
    return <p class="notice">This is an agent of the server itself. Nobody changes its zone or its key.</p>
  const { value: proposals = [] } = waiting.loaded
  const shared = { session, status, reload, deciding: deciding.loaded.value }
  return (
    <div class="agent-changes">
      {[deciding, waiting].map(
        ({ loaded, reload: again }, at) =>
          loaded.kind === 'failed' && <Failure key={at} message={loaded.message} retry={again} />,
      )}
      <section aria-labelledby="rule-title">
        <h2 id="rule-title">When a change takes effect</h2>
        <Rule session={session} status={status} deciding={shared.deciding} />
      </section>
      <ZoneSection {...shared} waiting={proposals.find(({ action }) => action === 'zone')} />
      <KeySection {...shared} waiting={proposals.find(({ action }) => action === 'rotate_key')} />
    </div>
  )
}

/** Open proposals of the agent, as far as the key may see them. */
async function readWaiting(
  { service, who }: SignedIn,
  agent: string,
  signal: AbortSignal,
): Promise<Proposal[]> {
  if (!may(who, 'proposals:decide')) return []
  const page = await service.proposals.list({ agent, state: 'proposed', limit: PROPOSALS_MAX, signal })
  return page.proposals
}
