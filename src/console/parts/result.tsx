import type { ComponentChildren } from 'preact'
import type { Verdict } from '../proof/prove-record.js'

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
