import type { Moment } from './reads.js'
import { hlcOf, msOf } from './strand.js'
import type { World } from './world.js'

/** The text of a moment, and the clock readings that it means. */
export interface ResolvedMoment {
  text: string
  /** As a lower bound. */
  first: string
  /** As an upper bound; a moment in milliseconds includes the whole millisecond. */
  last: string
}

/** Resolves a moment. */
export function momentOf(world: World, { agent, pick, place, form }: Moment): ResolvedMoment {
  const chain = world.chains.get(agent) ?? []
  const hlc = chain[pick % chain.length]?.hlc
  if (hlc === undefined || place === 'now') return ofMs(world.nowMs, form)
  const ms = msOf(hlc)
  if (place === 'long before') return ofMs(ms - 86_400_000, form)
  const step = { at: 0, before: -1, after: 1 }[place]
  if (form !== 'hlc') return ofMs(ms + step, form)
  const text = neighbour(hlc, step)
  return { text, first: text, last: text }
}

function ofMs(ms: number, form: string): ResolvedMoment {
  const text = form === 'iso' ? new Date(ms).toISOString() : String(ms)
  return { text, first: hlcOf(ms, 'first'), last: hlcOf(ms, 'last') }
}

/** The reading right before or after another. */
function neighbour(hlc: string, step: number): string {
  const ms = msOf(hlc)
  const counter = Number.parseInt(hlc.slice(13), 16) + step
  if (counter < 0) return hlcOf(ms - 1, 'last')
  return `${hlc.slice(0, 13)}${counter.toString(16).padStart(4, '0')}`
}
