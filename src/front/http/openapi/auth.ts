import type { ErrorCode } from '../../../base/errors.js'
import type { AuthRoute } from '../../routes/auth-route.js'

/*
 * What the OpenAPI document tells of the auth routes beside what stands on each of them.
 */

/** The codes that an auth route answers with by what it is. */
export function authCodes(route: AuthRoute): ErrorCode[] {
  const { caller, docs, method, organism, whileOff, writes } = route
  const found: ErrorCode[] = ['license_required', ...callerCodes[caller]]
  if (whileOff === undefined) found.push('auth_disabled', 'overloaded')
  if (organism === 'initialised') found.push('namespace_not_found', 'overloaded')
  if (docs.request !== undefined) found.push('too_large', 'unsupported_media_type')
  if (method !== 'get' || writes === true) found.push('outcome_unknown', 'clock_skew', 'storage_full')
  return found
}

const callerCodes: Readonly<Record<AuthRoute['caller'], readonly ErrorCode[]>> = {
  anyone: [],
  user: ['unauthorized', 'invalid_token', 'token_expired', 'token_revoked'],
  admin: ['unauthorized', 'forbidden'],
}

/** The credentials that an auth route takes. */
export function authSecurity(route: AuthRoute): unknown[] {
  if (route.caller === 'anyone') return []
  return route.caller === 'user' ? [{ userToken: [] }] : [{ rootKey: [] }, { scopedKey: [authScope(route)] }]
}

/** What `x-scope` says of an auth route. */
export function authScope({ caller, organism }: AuthRoute): string {
  const admin = organism === undefined ? 'admin:*' : 'admin:organisms'
  return { anyone: 'none', user: 'user', admin }[caller]
}
