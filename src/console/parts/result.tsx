import type { ComponentChildren } from 'preact'

/** What a proof found. */
export interface Verdict {
  ok: boolean
  /** Begins with `Verified` or `Not verified` and names the record. */
  text: string
}

/** How far something long is; `of` is undefined where its size is not known. */
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

/** What a check found; read out by screen readers as it comes. */
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
