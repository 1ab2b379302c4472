import type { PolicyClaims } from '../../../auth/row-policy.js'
import type { User } from '../../../client/index.js'
import { utf8 } from '../../../proof/hex.js'
import { readJson } from '../../../strand/json.js'
import { isObject } from '../../parts/json.js'

/** The server's depth limit of metadata, plus one level for the claims themselves. */
const DEPTH_MAX = 17

/** The claims that rules can refer to, as a new token of the user would have them. */
export function claimsOf(user: User): PolicyClaims {
  const { user_id: sub, email, mailbox_proven: isProven } = user
  const { app_metadata, user_metadata } = user
  return { sub, email, ...(isProven && { verified_email: email }), app_metadata, user_metadata }
}

/**
 * Reads claims from a JSON text, for example the payload of a token; claims that rules cannot refer to are
 * dropped.
 */
export function readClaims(text: string): { claims: PolicyClaims } | { fault: string } {
  const read = readJson(utf8(text), DEPTH_MAX)
  if ('code' in read) return { fault: read.detail }
  if (!isObject(read.value)) return { fault: 'Expected an object of claims' }
  const { sub, email, verified_email: verified, app_metadata: app = {}, user_metadata: own = {} } = read.value
  if (typeof sub !== 'string' || typeof email !== 'string')
    return { fault: 'Expected sub and email to be strings' }
  if (verified !== undefined && typeof verified !== 'string')
    return { fault: 'Expected verified_email to be a string or absent' }
  if (!isObject(app) || !isObject(own))
    return { fault: 'Expected app_metadata and user_metadata to be objects' }
  const proven = verified === undefined ? {} : { verified_email: verified }
  return { claims: { sub, email, ...proven, app_metadata: app, user_metadata: own } }
}
