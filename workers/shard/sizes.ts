import type { Outcome } from '../../src/protocol/messages.js'
import { spaceForImport, spaceForWrite, type SpaceNeed } from '../store/preallocation.js'
import type { Write } from './command-table.js'

/** An upper bound of the disk space that writes need, as far as it is known before they are decided. */
export function spaceFor(writes: readonly Write[]): SpaceNeed {
  const sum = { store: 0, log: 0 }
  for (const command of writes) {
    const { store, log } = spaceOf(command)
    sum.store += store
    sum.log += log
  }
  return sum
}

function spaceOf(command: Write): SpaceNeed {
  if (command.kind === 'strandImport')
    return spaceForImport(command.lastSeq - command.firstSeq + 1, command.chunk.length)
  const body = 'body' in command ? command.body : 'chunk' in command ? command.chunk : undefined
  return spaceForWrite(body?.length ?? 0)
}

/** Bytes of the body of a write; 0 for a chunk of lines. */
export function bodyBytesOf(command: Write): number {
  return 'body' in command ? command.body.length : 0
}

/** The approximate bytes of an outcome; 0 for kinds that are always small. */
export function sizeOf(outcome: Outcome): number {
  switch (outcome.kind) {
    case 'reply':
      return outcome.body.length
    case 'rows':
      return outcome.rows.length
    case 'proposals':
      return outcome.rows.reduce((sum, row) => sum + row.length, 0)
    case 'page':
      return outcome.events.reduce((sum, { data }) => sum + data.length, 0)
    case 'names':
      return outcome.names.reduce((sum, name) => sum + name.length, 0)
    case 'edges':
      return outcome.edges.reduce(
        (sum, { src, dst, edgeType }) => sum + src.length + dst.length + edgeType.length,
        0,
      )
    default:
      return 0
  }
}
