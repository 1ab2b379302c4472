import type { License } from '../../../auth/license.js'
import type { Clock } from '../../../base/clock.js'
import { refuse, type Refusal } from '../../../base/errors.js'

const disabled = refuse('auth_disabled', 'Expected SERVICE_AUTH_ENABLED=true on this server')
const unlicensed = refuse('license_required', 'Expected a valid SERVICE_LICENSE_KEY on this server')

/**
 * Whether the auth routes serve. Routes that end access serve without a license, too (src/front/routes/auth-route.ts).
 * @param license undefined when there is none that is valid
 * @returns a function that says why they do not: 404 auth_disabled or 402 license_required
 */
export function activation(
  enabled: boolean,
  license: License | undefined,
  clock: Clock,
): () => Refusal | undefined {
  if (!enabled) return () => disabled
  return () => (license !== undefined && license.expiresAtMs > clock() ? undefined : unlicensed)
}
