import type { ComponentChildren } from 'preact'

/** The result of a proof or check. */
export interface Verdict {
  ok: boolean
  /** Begins with `Verified` or `Not verified` and names the record. */
  text: string
}

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

/** Shows a verdict, which screen readers announce. */
export function Result({
  verdict,
  children,
}: {
  verdict: Verdict | undefined
  children?: ComponentChildren
}) {
  return (
    <div
      role="status"
      class={verdict === undefined ? 'verdict-none' : `verdict ${verdict.ok ? 'good' : 'bad'}`}
    >
      {verdict !== undefined && <p class="verdict-text">{verdict.text}</p>}
      {verdict !== undefined && children}
    </div>
  )
}
