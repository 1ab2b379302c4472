import type { ComponentChildren } from 'preact'

/** What a proof found. */
export interface Verdict {
  ok: boolean
  /** Begins with `Verified` or `Not verified` and names the record. */
  text: string
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
