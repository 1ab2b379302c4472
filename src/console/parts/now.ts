import { useEffect, useState } from 'preact/hooks'

const SECOND_MS = 1_000

/** The current time in Unix milliseconds, updated every second. */
export function useNow(): number {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), SECOND_MS)
    return () => clearInterval(timer)
  }, [])
  return nowMs
}

/** A remaining time as text: `0:42`, `12:05`, `3 h`, `7 days`. */
export function leftText(leftMs: number): string {
  const secs = Math.max(0, Math.ceil(leftMs / SECOND_MS))
  const minutes = Math.floor(secs / 60)
  if (minutes < 60) return `${minutes}:${String(secs % 60).padStart(2, '0')}`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`
}
