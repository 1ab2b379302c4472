import type { PasskeyRow } from '../../src/auth/passkey.js'
import type { PasskeySessionDraft } from '../../src/protocol/auth-messages.js'
import type { AuthRows } from '../store/tables/auth-rows.js'
import type { NamespaceState } from './namespace-state.js'

/** A passkey by its credential id (base64url). */
export function passkeyById(namespace: NamespaceState, id: string): PasskeyRow | undefined {
  return namespace.find('passkey', id)
}

/** The passkeys of a user, oldest first. */
export function passkeysOf(namespace: NamespaceState, userId: string): PasskeyRow[] {
  return namespace
    .ids('user-passkey', `${userId}:`)
    .map((id) => namespace.findValid('passkey', id.slice(userId.length + 1)))
    .filter((passkey) => passkey !== undefined)
    .toSorted((one, other) => one.createdAtMs - other.createdAtMs)
}

/** The number of a user's passkeys. */
export function countPasskeys(namespace: NamespaceState, userId: string): number {
  return namespace.countSome('user-passkey', `${userId}:`)
}

/** Writes the current state of a passkey. */
export function putPasskey(namespace: NamespaceState, passkey: PasskeyRow): void {
  namespace.put(['passkey', passkey.id], passkey)
  namespace.put(['user-passkey', `${passkey.userId}:${passkey.id}`], true)
}

export function dropPasskey(
  namespace: NamespaceState,
  { userId, id }: Pick<PasskeyRow, 'userId' | 'id'>,
): void {
  namespace.remove('passkey', id)
  namespace.remove('user-passkey', `${userId}:${id}`)
}

/** Removes all passkeys of a user. @returns their number */
export function dropPasskeys(namespace: NamespaceState, userId: string): number {
  const ids = namespace.ids('user-passkey', `${userId}:`)
  for (const id of ids) dropPasskey(namespace, { userId, id: id.slice(userId.length + 1) })
  return ids.length
}

/** Stores a ceremony until it ends or expires. */
export function putPasskeySession(
  namespace: NamespaceState,
  { hash, challenge, expiresAtMs }: PasskeySessionDraft,
  about: Pick<AuthRows['passkey-session'], 'ceremony' | 'named' | 'email' | 'userId'>,
): void {
  const row: AuthRows['passkey-session'] = { ...about, challenge, expiresAtMs }
  namespace.put(['passkey-session', hash], row, expiresAtMs)
}

/** Removes and returns a ceremony: the first attempt to finish it ends it, successful or not. */
export function takePasskeySession(
  namespace: NamespaceState,
  hash: string,
): AuthRows['passkey-session'] | undefined {
  const row = namespace.find('passkey-session', hash)
  if (row === undefined) return undefined
  namespace.remove('passkey-session', hash)
  return row
}
