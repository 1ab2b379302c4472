import { type Refusal, refuse } from '../base/errors.js'
import { canonicalJson } from '../strand/json.js'
import type { Metadata } from './user.js'

/** The two objects of one user that go into each of its tokens. */
export interface UserMetadata {
  appMetadata: Metadata
  userMetadata: Metadata
}

/**
 * Checks both objects of a user together, as they would be stored.
 * @param bytesMax SERVICE_AUTH_METADATA_MAX_BYTES: the bytes of both canonical forms (RFC 8785)
 * @returns `metadata_too_large`, or `validation_failed` for a member named `__proto__`; nothing when it may be stored
 */
export function metadataRefusal(metadata: UserMetadata, bytesMax: number): Refusal | undefined {
  // Checked first, because making the canonical form throws for such a member.
  if (hasProtoMember(metadata.appMetadata) || hasProtoMember(metadata.userMetadata)) {
    return refuse('validation_failed', 'Expected no key named __proto__')
  }
  const bytes = metadataBytes(metadata)
  if (bytes <= bytesMax) return undefined
  return refuse(
    'metadata_too_large',
    `Expected app_metadata and user_metadata to take at most ${bytesMax} bytes together, not ${bytes}`,
  )
}

/** Bytes that both objects take together in canonical form. */
export function metadataBytes(metadata: UserMetadata): number {
  const app = Buffer.byteLength(canonicalJson(metadata.appMetadata))
  return app + Buffer.byteLength(canonicalJson(metadata.userMetadata))
}

function hasProtoMember(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Object.hasOwn(value, '__proto__')) return true
  return Object.values(value).some(hasProtoMember)
}
