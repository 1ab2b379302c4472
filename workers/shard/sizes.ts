import type { Outcome } from '../../src/protocol/messages.js'
import { roomOfImport, roomOfWrite, type Room } from '../store/preallocation.js'
import type { Write } from './apply.js'

/** How much room writes can need, as far as that is known before they are decided. */
export function roomFor(writes: readonly Write[]): Room {
  const room = { store: 0, log: 0 }
  for (const command of writes) {
    const { store, log } = roomOf(command)
    room.store += store
    room.log += log
  }
  return room
}

function roomOf(command: Write): Room {
  if (command.kind === 'strandImport')
    return roomOfImport(command.lastSeq - command.firstSeq + 1, command.chunk.length)
  const body = 'body' in command ? command.body : 'chunk' in command ? command.chunk : undefined
  return roomOfWrite(body?.length ?? 0)
}

/** Bytes of the body of a record that is written by itself, or of a batch. */
export function bodyBytesOf(command: Write): number {
  return 'body' in command ? command.body.length : 0
}

/** Roughly how many bytes an outcome has, for those that can be large. */
export function sizeOf(outcome: Outcome): number {
  switch (outcome.kind) {
    case 'reply':
      return outcome.body.length
    case 'rows':
      return outcome.rows.reduce((sum, row) => sum + row.length, 0)
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
