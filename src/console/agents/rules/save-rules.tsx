import type { Policy } from '../../../auth/row-policy.js'
import { type AgentStatusResponse, type ServiceClient, ServiceError } from '../../../client/index.js'
import { Confirm } from '../../parts/confirm.js'
import { explain } from '../../parts/explain.js'
import { countText } from '../../parts/format.js'
import { Diff, policyRows } from '../../parts/rule-diff.js'
import { agentLink } from '../../route.js'
import { textOfRules } from './draft.js'
import { zoneRules } from './words.js'

/** Asks before the rules are replaced, saying what changes and when, and says what came of it. */
export function SaveRules(props: {
  service: ServiceClient
  status: AgentStatusResponse
  saved: Policy[]
  policies: Policy[]
  /** @param isSent whether the server has taken the rules, at once or as a proposal */
  close: (isSent: boolean) => void
}) {
  const { service, status, saved, policies, close } = props
  const { agent_id: agent, zone } = status
  const handle = service.agent(agent)
  return (
    <Confirm
      change={{
        title: 'Save the rules',
        heading: `Save the rules of ${agent}`,
        button: zone === 'free' ? 'Save the rules' : 'Propose the rules',
        stop: 'Go on editing',
        async apply() {
          // Somebody else may have changed them since they were read.
          const { policies: now } = await handle.policies()
          if (textOfRules(now) !== textOfRules(saved)) throw new Error(changedText)
          return handle.setPolicies(policies)
        },
        refused,
        told: ({ seq }) => (
          <p role="status">
            The rules hold from now on, by the signed{' '}
            <a href={agentLink(agent, seq)}>record {countText(seq)}</a>.
          </p>
        ),
        close,
      }}
    >
      <Diff rows={policyRows(saved, policies)} />
      {policies.length === 0 && (
        <p class="notice bad">Without a rule, users reach nothing of this agent any more.</p>
      )}
      <p class="notice">
        {zoneRules[zone]} Streams that users have open on this agent then end, and are judged again when they
        come back. The rules before stay in the strand, as a signed record.
      </p>
    </Confirm>
  )
}

const changedText =
  'Somebody has changed the rules since they were read here. Copy yours, and load the page again'

function refused(error: unknown): string {
  if (error instanceof ServiceError && error.code === 'proposal_open')
    return 'A proposal of other rules for this agent waits already. It is listed under Proposals'
  return explain(error)
}
