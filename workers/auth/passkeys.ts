import type { PasskeyRow } from '../../src/auth/passkey.js'
import type { PasskeySessionDraft } from '../../src/protocol/auth-messages.js'
import type { PasskeySessionRow } from '../store/auth-rows.js'
import type { AuthSpace } from './namespace-state.js'

/** A passkey by its credential id, base64url. */
export function passkeyById(space: AuthSpace, id: string): PasskeyRow | undefined {
  return space.find('passkey', id)
}

/** The passkeys of a user, the oldest first. */
export function passkeysOf(space: AuthSpace, userId: string): PasskeyRow[] {
  return space
    .ids('user-passkey', `${userId}:`)
    .map((id) => passkeyById(space, id.slice(userId.length + 1)))
    .filter((passkey) => passkey !== undefined)
    .toSorted((one, other) => one.createdAtMs - other.createdAtMs)
}

/** Keeps a passkey as it is now. */
export function putPasskey(space: AuthSpace, passkey: PasskeyRow): void {
  space.put(['passkey', passkey.id], passkey)
  space.put(['user-passkey', `${passkey.userId}:${passkey.id}`], true)
}

/** Takes a passkey out. */
export function dropPasskey(space: AuthSpace, { userId, id }: Pick<PasskeyRow, 'userId' | 'id'>): void {
  space.remove('passkey', id)
  space.remove('user-passkey', `${userId}:${id}`)
}

/** Takes every passkey of a user out. @returns how many */
export function dropPasskeys(space: AuthSpace, userId: string): number {
  const ids = space.ids('user-passkey', `${userId}:`)
  for (const id of ids) dropPasskey(space, { userId, id: id.slice(userId.length + 1) })
  return ids.length
}

/** Keeps a ceremony until it ends. */
export function putPasskeySession(
  space: AuthSpace,
  { hash, challenge, expiresAtMs }: PasskeySessionDraft,
  about: Pick<PasskeySessionRow, 'ceremony' | 'named' | 'userId'>,
): void {
  const row: PasskeySessionRow = { ...about, challenge, expiresAtMs }
  space.put(['passkey-session', hash], row, expiresAtMs)
}

/** Takes a ceremony out: its first finishing attempt ends it, whatever comes of that. */
export function takePasskeySession(space: AuthSpace, hash: string): PasskeySessionRow | undefined {
  const row = space.find('passkey-session', hash)
  if (row === undefined) return undefined
  space.remove('passkey-session', hash)
  return row
}
