import type { ComponentChildren, RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Proposed } from '../../client/index.js'
import { proposalLink } from '../route.js'
import { Dialog } from './dialog.js'
import { Field, Form, Problem } from './field.js'
import { useChange } from './load.js'
import { Button, Time } from './texts.js'

/** A text that the user has to type before a change that cannot be undone. */
export interface Confirmation {
  wanted: string
  /** Describes the text, for example `the last 8 digits of the hash`. */
  what: string
}

interface ConfirmedChange<Applied> {
  title: string
  /** The heading of the dialog; the title by default. */
  heading?: ComponentChildren
  button: string
  /** The text of the button that cancels; “Cancel” by default. */
  stop?: string
  /** Whether the change destroys data; true by default for a change with a confirmation. */
  isDanger?: boolean
  confirm?: Confirmation | undefined
  /** Whether the change cannot be made at the moment. */
  isDisabled?: boolean
  /** @throws the reason why the change failed */
  apply: () => Promise<Applied | Proposed>
  /** Turns an error into a message; `explain` by default. */
  explainError?: (error: unknown) => ComponentChildren
  /** Describes the result. Without it, the dialog closes after the change. */
  describeResult?: (applied: Applied) => ComponentChildren
  close: (isChanged: boolean) => void
}

/** A dialog that describes a change, asks the user to confirm it, and shows the result. */
export function Confirm<Applied extends object>(props: {
  change: ConfirmedChange<Applied>
  /** Describes the consequences. */
  children: ComponentChildren
}) {
  const { change, children } = props
  const { title, heading = title, describeResult, close } = change
  const [outcome, setOutcome] = useState<Applied | Proposed | undefined>(undefined)
  return (
    <Dialog title={title} class="dialog" close={() => close(outcome !== undefined)}>
      <h2>{heading}</h2>
      {outcome === undefined ? (
        <>
          {children}
          <ConfirmForm change={change} done={describeResult === undefined ? () => close(true) : setOutcome} />
        </>
      ) : (
        <>
          {isProposed(outcome) ? <ProposedNotice proposed={outcome} /> : describeResult?.(outcome)}
          <Done close={() => close(true)} />
        </>
      )}
    </Dialog>
  )
}

function isProposed(outcome: object): outcome is Proposed {
  return 'proposal_id' in outcome
}

function ConfirmForm<Applied>(props: {
  change: ConfirmedChange<Applied>
  done: (outcome: Applied | Proposed) => void
}) {
  const { change, done } = props
  const { button, stop = 'Cancel', confirm, isDanger = confirm !== undefined, isDisabled = false } = change
  const [typed, setTyped] = useState('')
  const { isBusy, problem, run } = useChange()
  const isConfirmed = confirm === undefined || typed.trim() === confirm.wanted
  return (
    <Form
      submit={() => {
        if (isConfirmed) void run(async () => done(await change.apply()), change.explainError)
      }}
    >
      {confirm !== undefined && (
        <Field
          name={
            <span class="typed">
              To confirm, type {confirm.what}: <code>{confirm.wanted}</code>
            </span>
          }
          class="long-input"
          value={typed}
          set={setTyped}
        />
      )}
      <Problem text={problem} />
      <div class="buttons">
        <Button
          text={button}
          type="submit"
          class={isDanger ? 'danger' : 'primary'}
          disabled={isBusy || isDisabled || !isConfirmed}
        />
        <Button text={stop} onClick={() => change.close(false)} />
      </div>
    </Form>
  )
}

/**
 * An element that takes the focus after a change, because the button that was pressed may no longer exist.
 */
export function useFocusAfter<Target extends HTMLElement>(
  reload: () => void,
): { focusTarget: RefObject<Target | null>; changed: () => void } {
  const focusTarget = useRef<Target>(null)
  const [changes, setChanges] = useState(0)
  useLayoutEffect(() => {
    if (changes > 0) focusTarget.current?.focus()
  }, [changes])
  return {
    focusTarget,
    changed() {
      setChanges(changes + 1)
      reload()
    },
  }
}

function ProposedNotice({ proposed }: { proposed: Proposed }) {
  const { proposal_id: id, effective_at_ms: effectiveAtMs } = proposed
  return (
    <p role="status">
      The change is now a pending proposal.{' '}
      {effectiveAtMs === null ? (
        'It takes effect when another key approves it.'
      ) : (
        <>
          It takes effect automatically at <Time ms={effectiveAtMs} />, unless it is rejected before.
        </>
      )}{' '}
      <a href={proposalLink(id)}>Open the proposal</a>
    </p>
  )
}

function Done({ close }: { close: () => void }) {
  const button = useRef<HTMLButtonElement>(null)
  // The button that had the focus no longer exists.
  useLayoutEffect(() => button.current?.focus(), [])
  return (
    <div class="buttons">
      <button ref={button} type="button" class="primary" onClick={close}>
        Done
      </button>
    </div>
  )
}

/** What a change removes, keeps and does not affect (docs/SECURITY.md, Deleting and erasing). */
export interface ChangeConsequences {
  removed: string[]
  kept: string[]
  /** Copies that the user has to handle elsewhere. */
  notAffected: string[]
}

/** Lists the consequences of a change before it is made. */
export function ConsequenceList({ consequences }: { consequences: ChangeConsequences }) {
  const { removed, kept, notAffected } = consequences
  return (
    <div class="consequences">
      <Points title="What is removed" points={removed} />
      <Points title="What stays" points={kept} />
      <Points title="Not affected, handle these yourself" points={notAffected} />
    </div>
  )
}

function Points({ title, points }: { title: string; points: readonly string[] }) {
  if (points.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {points.map((point) => (
          <li key={point}>{point}</li>
        ))}
      </ul>
    </>
  )
}
