import type { ComponentChildren } from 'preact'
import { type Proposed, ServiceError } from '../../../client/index.js'
import { Confirm, type Confirmation, type ChangeConsequences, ConsequenceList } from '../../parts/confirm.js'
import { explain } from '../../parts/explain.js'
import { countText } from '../../parts/format.js'
import { CopyButton } from '../../parts/texts.js'
import { agentLink, proposalLink } from '../../route.js'

/** A change of an agent that the user confirms in a dialog. */
export interface AgentChange<Applied> {
  agent: string
  title: string
  consequences: ChangeConsequences
  button: string
  /** The text to type first; undefined if the change can be undone. */
  confirm: Confirmation | undefined
  apply: () => Promise<Applied | Proposed>
  /** Describes the result, with the new public key if the key was changed. */
  resultOf: (applied: Applied) => { text: string; publicKey?: string }
}

/** A dialog that confirms the change of an agent, after listing its consequences. */
export function ChangeAgent<Applied extends { seq: number }>(props: {
  change: AgentChange<Applied>
  /** The rule of the zone, with the keys that can approve. */
  rule: ComponentChildren
  /** Further fields of the form. */
  children?: ComponentChildren
  close: (isChanged: boolean) => void
}) {
  const { change, rule, children, close } = props
  const { agent, consequences, resultOf, ...confirmed } = change
  const describeResult = (applied: Applied) => (
    <Changed agent={agent} seq={applied.seq} {...resultOf(applied)} />
  )
  return (
    <Confirm<Applied> change={{ ...confirmed, explainError, describeResult, close }}>
      {children}
      <ConsequenceList consequences={consequences} />
      {rule}
    </Confirm>
  )
}

function Changed(props: { agent: string; seq: number; text: string; publicKey?: string }) {
  const { agent, seq, text, publicKey } = props
  return (
    <>
      <p role="status">
        {text} See the signed <a href={agentLink(agent, seq)}>record {countText(seq)}</a>.
      </p>
      {publicKey !== undefined && (
        <p class="long">
          <code>{publicKey}</code> <CopyButton text={publicKey} name="the new key" />
        </p>
      )}
    </>
  )
}

function explainError(error: unknown): ComponentChildren {
  if (!(error instanceof ServiceError) || error.code !== 'proposal_open') return explain(error)
  const { proposal_id: id } = error.problem
  return (
    <>
      A proposal to change this is already pending.{' '}
      {typeof id === 'string' && <a href={proposalLink(id)}>Open the proposal</a>}
    </>
  )
}
