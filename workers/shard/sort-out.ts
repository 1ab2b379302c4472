import type { CommandFrame } from '../../src/protocol/frame.js'
import type { StoreFlush } from '../../src/protocol/messages.js'
import { agentOf, isWrite, type Read, type Write } from './apply.js'

/** A command with the number that its outcome carries. */
export type Numbered<C> = [id: number, command: C]

/**
 * Separates writes from reads, and puts the writes of one agent together in the order they came, so that they lie
 * together in a block. Commands of one frame come from requests that were under way at the same time, so no order
 * between agents was promised to anyone.
 */
export function sortOut(commands: CommandFrame): {
  writes: Numbered<Write>[]
  reads: Numbered<Read>[]
  flushes: Numbered<StoreFlush>[]
  goOns: number[]
} {
  const reads: Numbered<Read>[] = []
  const flushes: Numbered<StoreFlush>[] = []
  const goOns: number[] = []
  const byAgent = new Map<string, Numbered<Write>[]>()
  for (const [id, command] of commands) {
    if (command.kind === 'storeFlush') {
      flushes.push([id, command])
      continue
    }
    if (command.kind === 'storeGoOn') {
      goOns.push(id)
      continue
    }
    if (!isWrite(command)) {
      reads.push([id, command])
      continue
    }
    const agent = agentOf(command)
    const others = byAgent.get(agent)
    if (others === undefined) byAgent.set(agent, [[id, command]])
    else others.push([id, command])
  }
  return { writes: [...byAgent.values()].flat(), reads, flushes, goOns }
}
