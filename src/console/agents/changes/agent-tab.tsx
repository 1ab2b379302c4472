import type { AgentStatusResponse, ProposalView } from '../../../client/index.js'
import { useLoaded } from '../../parts/load.js'
import { Failure } from '../../parts/texts.js'
import { type SignedIn, hasScope } from '../../parts/session.js'
import { readApprovalContext } from './approvers.js'
import { KeySection, ZoneSection } from './sections.js'
import { Rule } from './rule.js'

const PROPOSALS_MAX = 1_000

/** Changes the zone and the key of an agent, after listing the consequences. */
export function AgentTab(props: { session: SignedIn; status: AgentStatusResponse; reload: () => void }) {
  const { session, status, reload } = props
  const { agent_id: agent, timestamp_hlc: hlc } = status
  const deciding = useLoaded('', (signal) => readApprovalContext(session, signal))
  const pending = useLoaded(hlc, (signal) => readPending(session, agent, signal))
  // No organism can have the id `server`.
  if (agent.startsWith('server::'))
    return <p class="notice">This agent belongs to the server. Its zone and its key cannot be changed.</p>
  const { value: proposals = [] } = pending.loaded
  const shared = { session, status, reload, deciding: deciding.loaded.value }
  return (
    <div class="agent-changes">
      {[deciding, pending].map(
        ({ loaded, reload: again }, at) =>
          loaded.kind === 'failed' && <Failure key={at} message={loaded.message} retry={again} />,
      )}
      <section aria-labelledby="rule-title">
        <h2 id="rule-title">When a change takes effect</h2>
        <Rule session={session} status={status} deciding={shared.deciding} />
      </section>
      <ZoneSection {...shared} pending={proposals.find(({ action }) => action === 'zone')} />
      <KeySection {...shared} pending={proposals.find(({ action }) => action === 'rotate_key')} />
    </div>
  )
}

/** Reads the open proposals of the agent; empty if the key cannot read proposals. */
async function readPending(
  { service, who }: SignedIn,
  agent: string,
  signal: AbortSignal,
): Promise<ProposalView[]> {
  if (!hasScope(who, 'proposals:decide')) return []
  const page = await service.proposals.list({ agent, state: 'proposed', limit: PROPOSALS_MAX, signal })
  return page.proposals
}
