import { durationText } from './duration.js'

/** The progress of a long operation, as shown to users: `copied`, in bytes. */
export interface ProgressPart {
  /** What happens to the units, such as `copied`. */
  doing: string
  unit: 'bytes' | 'records' | 'agents' | 'stores' | 'seconds'
  /** Units done, and their `total` if it is known. */
  state(): { done: number; total?: number | undefined }
}

/** Milliseconds after which the rate is shown; before, it means little. */
const RATE_AFTER_MS = 500

const MEBIBYTE = 1_048_576

/** One line with the units done, the rate and the remaining time. */
export function describeProgress(part: ProgressPart, elapsedMs: number): string {
  const { doing, unit } = part
  const { done, total } = part.state()
  const whole = total !== undefined && total > 0
  const share = whole ? ` (${Math.min(100, Math.floor((100 * done) / total))} %)` : ''
  const line = `${doing} ${amount(done, unit)}${whole ? ` of ${amount(total, unit)}` : ''} ${names[unit]}${share}`
  if (elapsedMs < RATE_AFTER_MS || done <= 0) return line
  const perSec = (1_000 * done) / elapsedMs
  const rate = unit === 'seconds' ? '' : `, ${amount(perSec, unit)}${unit === 'bytes' ? ' MiB' : ''}/s`
  return `${line}${rate}${whole ? `, ${durationText(1_000 * Math.ceil(Math.max(0, total - done) / perSec))} left` : ''}`
}

const names = { bytes: 'MiB', records: 'records', agents: 'agents', stores: 'stores', seconds: 's' } as const

function amount(count: number, unit: ProgressPart['unit']): string {
  return Math.ceil(unit === 'bytes' ? count / MEBIBYTE : count).toLocaleString('en')
}
