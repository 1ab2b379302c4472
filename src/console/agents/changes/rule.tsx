import type { AgentStatusResponse, ProposalView, Zone } from '../../../client/index.js'
import { countText } from '../../parts/format.js'
import { whatText } from '../../parts/proposal-labels.js'
import { proposalLink } from '../../route.js'
import type { SignedIn } from '../../parts/session.js'
import { type Approvers, approversOf, type ApprovalContext } from './approvers.js'
import { ruleText } from './change-agent.js'

const NAMES_SHOWN = 10

/** The props of the sections of the tab. */
export interface ChangeProps {
  session: SignedIn
  status: AgentStatusResponse
  /** Undefined until it is read, and if the key cannot read it. */
  deciding: ApprovalContext | undefined
  /** The pending proposal that prevents another one. */
  pending: ProposalView | undefined
  /** Reads the status of the agent again. */
  reload: () => void
}

/** When a change takes effect, and the keys that can approve it. */
export function Rule({ session, status, deciding }: Pick<ChangeProps, 'session' | 'status' | 'deciding'>) {
  const { agent_id: agent, zone } = status
  const approvers = approversFor({ session, agent, zone, deciding })
  return (
    <div class="notice">
      <p>{ruleText(zone, deciding?.governedSecs)}</p>
      {approvers !== undefined && <p>{approversText(approvers)}</p>}
    </div>
  )
}

/** Warns if the existing keys could not approve a later change out of the chosen zone. */
export function ReturnWarning(about: ZoneInQuestion) {
  const approvers = approversFor(about)
  if (approvers === undefined || approvers.lineages >= approvers.needed) return null
  return (
    <p class="notice warn">
      With the existing keys, you could not move the agent out of that zone again:{' '}
      {approvers.needed === 1 ? 'another key' : 'two other keys'} would have to approve it. Create them first.
    </p>
  )
}

/** A link to the pending proposal, shown instead of the button. */
export function PendingProposal({ proposal }: { proposal: ProposalView }) {
  return (
    <p>
      A proposal is already pending: <a href={proposalLink(proposal.proposal_id)}>{whatText(proposal)}</a>
    </p>
  )
}

interface ZoneInQuestion {
  session: SignedIn
  agent: string
  zone: Zone
  deciding: ApprovalContext | undefined
}

function approversFor({ session: { who }, agent, zone, deciding }: ZoneInQuestion): Approvers | undefined {
  return deciding && approversOf(deciding.keys, { who, agent, zone, nowMs: Date.now() })
}

function approversText({ names, lineages, needed }: Approvers): string {
  const advice = 'Create more keys first: a key created after a proposal cannot approve it.'
  if (names.length === 0) return `No existing key can approve it. ${advice}`
  const others = names.length > NAMES_SHOWN ? ` and ${countText(names.length - NAMES_SHOWN)} others` : ''
  const list = `Possible approvers: ${names.slice(0, NAMES_SHOWN).join(', ')}${others}.`
  return lineages < needed ? `${list} These are not enough. ${advice}` : list
}
