import { leftText, useNow } from './now.js'

/** The remaining time until a proposal is applied automatically. */
export function Countdown({ untilMs }: { untilMs: number }) {
  const leftMs = untilMs - useNow()
  return (
    <span role="timer" class="countdown">
      {leftMs > 0 ? `Automatically in ${leftText(leftMs)}` : 'Now'}
    </span>
  )
}
