import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

export interface Verdict {
  /** `consistent` if the check succeeded, but with a key that the user does not know. */
  outcome: 'verified' | 'consistent' | 'failed'
  /** Begins with the outcome and names the record. */
  text: string
}

/** The verdict of a check that succeeded: never `verified` without a key that the user trusts. */
export function holds(text: string, isKeyTrusted: boolean): Verdict {
  return isKeyTrusted
    ? { outcome: 'verified', text: `Verified: ${text}` }
    : { outcome: 'consistent', text: `Consistent; the signer is not known to you: ${text}` }
}

/** The verdict of a check that failed or could not be completed. */
export function fails(reason: string): Verdict {
  return { outcome: 'failed', text: `Not verified: ${reason}` }
}

const colours: Record<Verdict['outcome'], string> = { verified: 'good', consistent: 'warn', failed: 'bad' }

/** The progress of a long task; `of` is undefined if its size is unknown. */
export function ProgressLine(props: {
  name: string
  done: number
  of: number | undefined
  children?: ComponentChildren
}) {
  const { name, done, of, children } = props
  return (
    <div class="progress">
      {of === undefined ? (
        <progress aria-label={name} />
      ) : (
        <progress aria-label={name} max={Math.max(1, of)} value={done} />
      )}
      {children !== undefined && <p class="muted">{children}</p>}
    </div>
  )
}

interface ResultProps {
  verdict: Verdict | undefined
  children?: ComponentChildren
}

/** The verdict of a check that a button began, which takes the focus. */
export function FocusedResult(props: ResultProps) {
  const { verdict } = props
  const result = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (verdict !== undefined) result.current?.focus()
  }, [verdict])
  return (
    <div ref={result} tabIndex={-1}>
      <Result {...props} />
    </div>
  )
}

/** Shows a verdict, which screen readers announce. */
export function Result({ verdict, children }: ResultProps) {
  return (
    <div role="status" class={verdict === undefined ? 'verdict-none' : `verdict ${colours[verdict.outcome]}`}>
      {verdict !== undefined && <p class="verdict-text">{verdict.text}</p>}
      {verdict !== undefined && children}
    </div>
  )
}
