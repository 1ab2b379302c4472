import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type ProposedMutation, ServiceError } from '../../../client/index.js'
import { Dialog, Done } from '../../parts/dialog.js'
import { explain } from '../../parts/explain.js'
import { countText } from '../../parts/format.js'
import { CopyButton } from '../../parts/texts.js'
import { TypedConfirmation } from '../../parts/typed.js'
import { Waits } from '../../parts/waits.js'
import { type Left, WhatIsLeft } from '../../parts/what-is-left.js'
import { agentLink, proposalLink } from '../../route.js'

/** A change of an agent that is asked about before it is made. */
export interface AgentChange<Applied> {
  agent: string
  title: string
  left: Left
  button: string
  /** What has to be typed first; undefined where the change can be undone. */
  confirm: { wanted: string; what: string } | undefined
  apply: () => Promise<Applied | ProposedMutation>
  /** Says what came of it, and what the public key is, where that is another. */
  told: (applied: Applied) => { text: string; publicKey?: string }
}

interface Refused {
  text: string
  /** The proposal that is in the way. */
  proposal: string | undefined
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
  const [outcome, setOutcome] = useState<Applied | ProposedMutation | undefined>(undefined)
  return (
    <Dialog title={change.title} class="dialog" close={() => close(outcome !== undefined)}>
      <h2>{change.title}</h2>
      {outcome === undefined ? (
        <>
          {children}
          <WhatIsLeft left={change.left} />
          {rule}
          <Question change={change} done={setOutcome} stop={() => close(false)} />
        </>
      ) : (
        <>
          {'proposal_id' in outcome ? (
            <Waits proposed={outcome} />
          ) : (
            <Applied agent={change.agent} seq={outcome.seq} {...change.told(outcome)} />
          )}
          <Done close={() => close(true)} />
        </>
      )}
    </Dialog>
  )
}

function Applied(props: { agent: string; seq: number; text: string; publicKey?: string }) {
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

function Question<Applied>(props: {
  change: AgentChange<Applied>
  done: (outcome: Applied | ProposedMutation) => void
  stop: () => void
}) {
  const { change, done, stop } = props
  const { confirm, button } = change
  const [typed, setTyped] = useState('')
  const [refused, setRefused] = useState<Refused | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const apply = async (): Promise<void> => {
    setBusy(true)
    try {
      done(await change.apply())
    } catch (error) {
      setRefused(refusedBy(error))
      setBusy(false)
    }
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void apply()
      }}
    >
      {confirm !== undefined && <TypedConfirmation {...confirm} typed={typed} set={setTyped} />}
      {refused !== undefined && (
        <p class="problem" role="alert">
          {refused.text}{' '}
          {refused.proposal !== undefined && (
            <a href={proposalLink(refused.proposal)}>Look at the proposal</a>
          )}
        </p>
      )}
      <div class="buttons">
        <button
          type="submit"
          class={confirm === undefined ? 'primary' : 'danger'}
          disabled={isBusy || (confirm !== undefined && typed.trim() !== confirm.wanted)}
        >
          {button}
        </button>
        <button type="button" onClick={stop}>
          Leave it as it is
        </button>
      </div>
    </form>
  )
}

function refusedBy(error: unknown): Refused {
  if (!(error instanceof ServiceError) || error.code !== 'proposal_open')
    return { text: explain(error), proposal: undefined }
  const { proposal_id: id } = error.problem
  return {
    text: 'A proposal to change this waits already.',
    proposal: typeof id === 'string' ? id : undefined,
  }
}
