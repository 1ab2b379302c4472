import { useEffect, useState } from 'preact/hooks'

const SECOND_MS = 1_000
/** The server looks for due proposals once a second. */
const AFTER_DUE_MS = 1_500

/** The current time in Unix milliseconds, updated every second. */
export function useNow(): number {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), SECOND_MS)
    return () => clearInterval(timer)
  }, [])
  return nowMs
}

/**
 * Reads a value again after the server has applied what is due.
 * @param value the value that was read, which has the times
 * @param dueAtMs when something in it is due; empty if nothing is
 */
export function useReloadWhenDue(value: unknown, dueAtMs: readonly number[], reload: () => void): void {
  useEffect(() => {
    if (dueAtMs.length === 0) return undefined
    const waitMs = Math.max(0, Math.min(...dueAtMs) - Date.now()) + AFTER_DUE_MS
    const timer = setTimeout(reload, waitMs)
    return () => clearTimeout(timer)
  }, [value])
}

/** A remaining time as text: `0:42`, `12:05`, `3 h`, `7 days`. */
export function leftText(leftMs: number): string {
  const secs = Math.max(0, Math.ceil(leftMs / SECOND_MS))
  const minutes = Math.floor(secs / 60)
  if (minutes < 60) return `${minutes}:${String(secs % 60).padStart(2, '0')}`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`
}

/** The remaining time until a proposal is applied automatically. */
export function Countdown({ untilMs }: { untilMs: number }) {
  const leftMs = untilMs - useNow()
  return (
    <span role="timer" class="countdown">
      {leftMs > 0 ? `Automatically in ${leftText(leftMs)}` : 'Now'}
    </span>
  )
}
