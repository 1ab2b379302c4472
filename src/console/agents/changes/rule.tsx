import type { AgentStatusResponse, Proposal, Zone } from '../../../client/index.js'
import { countText } from '../../parts/format.js'
import { whatText } from '../../parts/proposal-words.js'
import { proposalLink } from '../../route.js'
import type { SignedIn } from '../../parts/session.js'
import { type Approvers, approversOf, type Deciding } from './approvers.js'
import { ruleText } from './words.js'

const NAMES_SHOWN = 10

/** What the parts of the tab are about. */
export interface ChangeProps {
  session: SignedIn
  status: AgentStatusResponse
  /** Undefined until it is read, and for a key that may not see it. */
  deciding: Deciding | undefined
  /** The proposal that is in the way. */
  waiting: Proposal | undefined
  /** Reads the state of the agent again. */
  reload: () => void
}

/** When a change takes effect, and whom it needs. */
export function Rule({ session, status, deciding }: Pick<ChangeProps, 'session' | 'status' | 'deciding'>) {
  const { agent_id: agent, zone } = status
  const approvers = whoFor({ session, agent, zone, deciding })
  return (
    <div class="notice">
      <p>{ruleText(zone, deciding?.governedSecs)}</p>
      {approvers !== undefined && <p>{approversText(approvers)}</p>}
    </div>
  )
}

/** A warning before a zone that nobody could lead the agent out of. */
export function WayBack(about: WhoFor) {
  const approvers = whoFor(about)
  if (approvers === undefined || approvers.lines >= approvers.needed) return null
  return (
    <p class="notice warn">
      With the keys that there are now, what you propose could not lead the agent out of that zone again:{' '}
      {approvers.needed === 1 ? 'another key' : 'two other keys'} would have to approve it. Make them first.
    </p>
  )
}

/** The proposal that waits already, in place of the button. */
export function Waiting({ proposal }: { proposal: Proposal }) {
  return (
    <p>
      A proposal waits already: <a href={proposalLink(proposal.proposal_id)}>{whatText(proposal)}</a>
    </p>
  )
}

interface WhoFor {
  session: SignedIn
  agent: string
  zone: Zone
  deciding: Deciding | undefined
}

function whoFor({ session: { who }, agent, zone, deciding }: WhoFor): Approvers | undefined {
  return deciding && approversOf(deciding.keys, { who, agent, zone, nowMs: Date.now() })
}

function approversText({ names, lines, needed }: Approvers): string {
  const short = 'Make keys for others first: a key that is younger than a proposal cannot approve it.'
  if (names.length === 0) return `Nobody could approve it now. ${short}`
  const others = names.length > NAMES_SHOWN ? ` and ${countText(names.length - NAMES_SHOWN)} others` : ''
  const who = `Who could approve it: ${names.slice(0, NAMES_SHOWN).join(', ')}${others}.`
  return lines < needed ? `${who} That is not enough. ${short}` : who
}
