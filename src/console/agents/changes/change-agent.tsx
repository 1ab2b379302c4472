import type { ComponentChildren } from 'preact'
import { type ProposedMutation, ServiceError } from '../../../client/index.js'
import { Confirm, type Confirmation, type Left, WhatIsLeft } from '../../parts/confirm.js'
import { explain } from '../../parts/explain.js'
import { countText } from '../../parts/format.js'
import { CopyButton } from '../../parts/texts.js'
import { agentLink, proposalLink } from '../../route.js'

/** A change of an agent that is asked about before it is made. */
export interface AgentChange<Applied> {
  agent: string
  title: string
  left: Left
  button: string
  /** What has to be typed first; undefined where the change can be undone. */
  confirm: Confirmation | undefined
  apply: () => Promise<Applied | ProposedMutation>
  /** Says what came of it, and what the public key is, where that is another. */
  told: (applied: Applied) => { text: string; publicKey?: string }
}

/** Asks before an agent is changed, saying what follows, and says what came of it. */
export function ChangeAgent<Applied extends { seq: number }>(props: {
  change: AgentChange<Applied>
  /** The rule by which it happens, and who it needs. */
  rule: ComponentChildren
  /** What belongs to the question itself. */
  children?: ComponentChildren
  close: (isChanged: boolean) => void
}) {
  const { change, rule, children, close } = props
  const { agent, left, told, ...asked } = change
  const applied = (outcome: Applied) => <Changed agent={agent} seq={outcome.seq} {...told(outcome)} />
  return (
    <Confirm<Applied> change={{ ...asked, stop: 'Leave it as it is', refused, told: applied, close }}>
      {children}
      <WhatIsLeft left={left} />
      {rule}
    </Confirm>
  )
}

function Changed(props: { agent: string; seq: number; text: string; publicKey?: string }) {
  const { agent, seq, text, publicKey } = props
  return (
    <>
      <p role="status">
        {text} <a href={agentLink(agent, seq)}>Record {countText(seq)}</a> says so, signed.
      </p>
      {publicKey !== undefined && (
        <p class="long">
          <code>{publicKey}</code> <CopyButton text={publicKey} name="the new key" />
        </p>
      )}
    </>
  )
}

function refused(error: unknown): ComponentChildren {
  if (!(error instanceof ServiceError) || error.code !== 'proposal_open') return explain(error)
  const { proposal_id: id } = error.problem
  return (
    <>
      A proposal to change this waits already.{' '}
      {typeof id === 'string' && <a href={proposalLink(id)}>Look at the proposal</a>}
    </>
  )
}
