import type { AuthMail } from '../../src/auth/outbox-message.js'
import { takeRoom } from '../../src/auth/mail-room.js'
import type { RoomsRow } from '../store/auth-rows.js'
import type { NamespaceState } from './namespace-state.js'

/** A mail, as far as its room is concerned. */
export interface RoomAsked extends Pick<AuthMail, 'kind' | 'to'> {
  /** Whether it will go out: one that serves nobody needs room, takes none, and costs as much. */
  served: boolean
}

/**
 * Takes the room of a mail. Each kind has its own, so that by asking for mails of one kind nobody keeps those of another
 * from the owner of the mailbox.
 * @returns whether there was room
 */
export function takeMailRoom(namespace: NamespaceState, { kind, to, served }: RoomAsked): boolean {
  const row = namespace.find('mail-room', to) ?? {}
  const fullAtMs = takeRoom(row[kind] ?? 0, namespace.nowMs)
  if (fullAtMs === undefined) return false
  const rooms: RoomsRow = { ...row, [kind]: served ? fullAtMs : (row[kind] ?? 0) }
  // Kept for as long as it would be if room were taken, so that the row of a mail that serves nobody is not another's.
  namespace.put(['mail-room', to], rooms, Math.max(fullAtMs, ...Object.values(rooms)))
  return true
}
