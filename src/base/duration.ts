const units = { day: 86_400_000, hour: 3_600_000, minute: 60_000, second: 1_000 }

/** A duration in the largest unit of which it has at least one, never longer than it is: `1.5 hours`. */
export function durationText(ms: number): string {
  const [unit, unitMs] = Object.entries(units).find(([, size]) => ms >= size) ?? ['second', units.second]
  const amount = Math.floor((10 * ms) / unitMs) / 10
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`
}
