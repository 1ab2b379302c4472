import type { Policy } from '../../../auth/row-policy.js'
import {
  type AgentStatusResponse,
  type PoliciesReplaced,
  type ServiceClient,
  ServiceError,
} from '../../../client/index.js'
import { Confirm } from '../../parts/confirm.js'
import { explain } from '../../parts/explain.js'
import { countText } from '../../parts/format.js'
import { Diff, policyRows } from '../../parts/rule-diff.js'
import { agentLink } from '../../route.js'
import { textOfRules } from './draft.js'
import { zoneRules } from './labels.js'

/** A dialog that confirms the replacement of the rules, after showing the diff and when it takes effect. */
export function SaveRules(props: {
  service: ServiceClient
  status: AgentStatusResponse
  saved: Policy[]
  policies: Policy[]
  /** @param isSent whether the server accepted the rules, directly or as a proposal */
  close: (isSent: boolean) => void
}) {
  const { service, status, saved, policies, close } = props
  const { agent_id: agent, zone } = status
  const handle = service.agent(agent)
  return (
    <Confirm<PoliciesReplaced>
      change={{
        title: 'Save rules',
        heading: `Save the rules of ${agent}`,
        button: zone === 'free' ? 'Save rules' : 'Propose rules',
        stop: 'Keep editing',
        async apply() {
          // Another user may have changed the rules since they were read.
          const { policies: current } = await handle.policies()
          if (textOfRules(current) !== textOfRules(saved)) throw new Error(changedText)
          return handle.setPolicies(policies)
        },
        explainError,
        describeResult: ({ seq }) => (
          <p role="status">
            The rules are in effect. See the signed{' '}
            <a href={agentLink(agent, seq)}>record {countText(seq)}</a>.
          </p>
        ),
        close,
      }}
    >
      <Diff rows={policyRows(saved, policies)} />
      {policies.length === 0 && (
        <p class="notice bad">Without rules, users can no longer access this agent.</p>
      )}
      <p class="notice">
        {zoneRules[zone]} Open streams of users on this agent then end; the new rules apply when clients
        reconnect. The previous rules stay in the strand as a signed record.
      </p>
    </Confirm>
  )
}

const changedText =
  'The rules were changed after this page loaded them. Copy your rules, then reload the page'

function explainError(error: unknown): string {
  if (error instanceof ServiceError && error.code === 'proposal_open')
    return 'A proposal to replace the rules of this agent is already pending. It is listed under Proposals'
  return explain(error)
}
