import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ProposedMutation } from '../../client/index.js'
import { proposalLink } from '../route.js'
import { Dialog } from './dialog.js'
import { Field, Problem } from './field.js'
import { useChange } from './load.js'
import { Time } from './texts.js'

/** What has to be typed before something that cannot be undone. */
export interface Confirmation {
  wanted: string
  /** What it is, as `the last 8 digits of the hash`. */
  what: string
}

/** A change, and how it is asked about before it is made. */
export interface ConfirmedChange<Applied> {
  title: string
  /** The title with more than a text; the title unless given. */
  heading?: ComponentChildren
  button: string
  /** The button that leaves everything as it is. */
  stop: string
  /** Whether it destroys something; what is to be typed first makes it so. */
  isDanger?: boolean
  confirm?: Confirmation | undefined
  /** What keeps it from being made just now. */
  isShut?: boolean
  /** @throws why it was not made */
  apply: () => Promise<Applied | ProposedMutation>
  /** Why it was not made; what an error means unless given. */
  refused?: (error: unknown) => ComponentChildren
  /** Says what came of it. Without it, the dialog closes once the change is made. */
  told?: (applied: Applied) => ComponentChildren
  close: (isChanged: boolean) => void
}

/** Asks before something is changed, saying what follows, and says what came of it. */
export function Confirm<Applied extends object>(props: {
  change: ConfirmedChange<Applied>
  /** What follows from it. */
  children: ComponentChildren
}) {
  const { change, children } = props
  const { title, heading = title, told, close } = change
  const [outcome, setOutcome] = useState<Applied | ProposedMutation | undefined>(undefined)
  return (
    <Dialog title={title} class="dialog" close={() => close(outcome !== undefined)}>
      <h2>{heading}</h2>
      {outcome === undefined ? (
        <>
          {children}
          <Question change={change} done={told === undefined ? () => close(true) : setOutcome} />
        </>
      ) : (
        <>
          {isProposed(outcome) ? <Waits proposed={outcome} /> : told?.(outcome)}
          <Done close={() => close(true)} />
        </>
      )}
    </Dialog>
  )
}

function isProposed(outcome: object): outcome is ProposedMutation {
  return 'proposal_id' in outcome
}

function Question<Applied>(props: {
  change: ConfirmedChange<Applied>
  done: (outcome: Applied | ProposedMutation) => void
}) {
  const { change, done } = props
  const { button, stop, confirm, isDanger = confirm !== undefined, isShut = false } = change
  const [typed, setTyped] = useState('')
  const { isBusy, problem, run } = useChange()
  const isConfirmed = confirm === undefined || typed.trim() === confirm.wanted
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isConfirmed) void run(async () => done(await change.apply()), change.refused)
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
        <button
          type="submit"
          class={isDanger ? 'danger' : 'primary'}
          disabled={isBusy || isShut || !isConfirmed}
        >
          {button}
        </button>
        <button type="button" onClick={() => change.close(false)}>
          {stop}
        </button>
      </div>
    </form>
  )
}

/** A place that takes the focus after a change: the button that led to it may be gone. */
export function useFocusAfter<Place extends HTMLElement>(
  reload: () => void,
): { place: RefObject<Place | null>; changed: () => void } {
  const place = useRef<Place>(null)
  const [changes, setChanges] = useState(0)
  useEffect(() => {
    if (changes > 0) place.current?.focus()
  }, [changes])
  return {
    place,
    changed() {
      setChanges(changes + 1)
      reload()
    },
  }
}

/** Says that a change has become a proposal, and leads to it. */
function Waits({ proposed }: { proposed: ProposedMutation }) {
  const { proposal_id: id, effective_at_ms: effectiveAtMs } = proposed
  return (
    <p role="status">
      It waits as a proposal.{' '}
      {effectiveAtMs === null ? (
        'It takes effect when somebody else approves it.'
      ) : (
        <>
          It takes effect by itself at <Time ms={effectiveAtMs} />, unless somebody rejects it.
        </>
      )}{' '}
      <a href={proposalLink(id)}>Look at the proposal</a>
    </p>
  )
}

/** The end of a dialog, which takes the focus. */
function Done({ close }: { close: () => void }) {
  const button = useRef<HTMLButtonElement>(null)
  // The button that was pressed last is gone.
  useEffect(() => button.current?.focus(), [])
  return (
    <div class="buttons">
      <button ref={button} type="button" class="primary" onClick={close}>
        Done
      </button>
    </div>
  )
}

/** What goes with a change, what stays, and what it does not reach (docs/SECURITY.md, Deleting and erasing). */
export interface Left {
  goes: string[]
  stays: string[]
  /** What has to be taken care of elsewhere. */
  notReached: string[]
}

/** What a change leaves, before it is made. */
export function WhatIsLeft({ left: { goes, stays, notReached } }: { left: Left }) {
  return (
    <div class="left">
      <Points title="What goes" points={goes} />
      <Points title="What stays" points={stays} />
      <Points title="What is not reached: take care of it yourself" points={notReached} />
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
