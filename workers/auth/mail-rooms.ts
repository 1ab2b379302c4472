import type { AuthMail } from '../../src/auth/outbox-message.js'
import { takeRoom } from '../../src/auth/mail-room.js'
import type { RoomsRow } from '../store/tables/auth-rows.js'
import type { NamespaceState } from './namespace-state.js'

/** A mail, as far as the limit of its mailbox is concerned. */
export interface RoomAsked extends Pick<AuthMail, 'kind' | 'to'> {
  /** Whether it will be sent. One that serves nobody is checked against the limit but not counted, at the same cost. */
  served: boolean
}

/**
 * Counts a mail against the limit of its mailbox. Each kind of mail has a limit of its own, so nobody can block one
 * kind by asking for another.
 * @returns whether there was room
 */
export function takeMailRoom(namespace: NamespaceState, { kind, to, served }: RoomAsked): boolean {
  const row = namespace.find('mail-room', to) ?? {}
  const before = row[kind] ?? 0
  const fullAtMs = takeRoom(before, namespace.nowMs)
  const rooms: RoomsRow = { ...row, [kind]: served ? (fullAtMs ?? before) : before }
  // Kept for as long as if the mail had been counted, so that the row of a mail that serves nobody looks the same.
  namespace.put(['mail-room', to], rooms, Math.max(fullAtMs ?? before, ...Object.values(rooms)))
  return fullAtMs !== undefined
}
