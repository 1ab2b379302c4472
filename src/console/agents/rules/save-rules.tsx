import { useState } from 'preact/hooks'
import type { Policy } from '../../../auth/row-policy.js'
import {
  type AgentStatusResponse,
  type PoliciesReplaced,
  type ProposedMutation,
  type ServiceClient,
  ServiceError,
} from '../../../client/index.js'
import { Dialog, Done } from '../../parts/dialog.js'
import { explain } from '../../parts/explain.js'
import { countText } from '../../parts/format.js'
import { Diff, policyRows } from '../../parts/rule-diff.js'
import { Waits } from '../../parts/waits.js'
import { agentLink } from '../../route.js'
import { textOfRules } from './draft.js'
import { zoneRules } from './words.js'

interface SaveProps {
  service: ServiceClient
  status: AgentStatusResponse
  saved: Policy[]
  policies: Policy[]
  /** @param isSent whether the server has taken the rules, at once or as a proposal */
  close: (isSent: boolean) => void
}

/** Asks before the rules are replaced, saying what changes and when, and says what came of it. */
export function SaveRules(props: SaveProps) {
  const { status, close } = props
  const [outcome, setOutcome] = useState<PoliciesReplaced | ProposedMutation | undefined>(undefined)
  const { agent_id: agent } = status
  return (
    <Dialog title="Save the rules" class="dialog" close={() => close(outcome !== undefined)}>
      <h2>Save the rules of {agent}</h2>
      {outcome === undefined ? (
        <Question {...props} done={setOutcome} />
      ) : (
        <>
          {'proposal_id' in outcome ? (
            <Waits proposed={outcome} />
          ) : (
            <p role="status">
              The rules hold from now on, by the signed{' '}
              <a href={agentLink(agent, outcome.seq)}>record {countText(outcome.seq)}</a>.
            </p>
          )}
          <Done close={() => close(true)} />
        </>
      )}
    </Dialog>
  )
}

function Question(props: SaveProps & { done: (outcome: PoliciesReplaced | ProposedMutation) => void }) {
  const { service, status, saved, policies, close, done } = props
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const save = async (): Promise<void> => {
    setBusy(true)
    try {
      const agent = service.agent(status.agent_id)
      // Somebody else may have changed them since they were read.
      const { policies: now } = await agent.policies()
      if (textOfRules(now) === textOfRules(saved)) return done(await agent.setPolicies(policies))
      setProblem(
        'Somebody has changed the rules since they were read here. Copy yours, and load the page anew',
      )
    } catch (error) {
      setProblem(problemText(error))
    }
    setBusy(false)
  }
  return (
    <>
      <Diff rows={policyRows(saved, policies)} />
      {policies.length === 0 && (
        <p class="notice bad">Without a rule, users reach nothing of this agent any more.</p>
      )}
      <p class="notice">
        {zoneRules[status.zone]} Streams that users have open on this agent then end, and are judged anew when
        they come back. The rules before stay in the strand, as a signed record.
      </p>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="buttons">
        <button type="button" class="primary" disabled={isBusy} onClick={() => void save()}>
          {status.zone === 'free' ? 'Save the rules' : 'Propose the rules'}
        </button>
        <button type="button" onClick={() => close(false)}>
          Go on editing
        </button>
      </div>
    </>
  )
}

function problemText(error: unknown): string {
  if (error instanceof ServiceError && error.code === 'proposal_open')
    return 'A proposal of other rules for this agent waits already. It is listed under Proposals'
  return explain(error)
}
