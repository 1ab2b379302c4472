import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../base/clock.js'
import { type Refusal, refuse } from '../../../base/errors.js'
import { endAuthors, endUploads } from '../../../dispatch/ended-authors.js'
import type { PasswordPool } from '../../../dispatch/pools/password-pool.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { AuthAnswer, AuthOutcome } from '../../../protocol/auth-messages.js'
import type { LoginPermits } from '../../../protocol/login-permits.js'
import type { Outcome } from '../../../protocol/messages.js'
import { unexpected } from '../../routes/answers.js'
import type { Principal } from '../../routes/route.js'
import type {
  AuthContext,
  AuthRequest,
  AuthRouteSettings,
  OauthFlow,
  PasskeyCeremonies,
  TokenIssuer,
} from '../../routes/auth-route.js'
import type { License } from '../../../auth/license.js'
import type { Namespace } from '../../../auth/namespace.js'
import { boundedCache } from '../../../base/bounded-cache.js'
import { limits } from '../../../base/limits/limits.js'

/** The parts behind the auth routes. */
export interface AuthParts {
  shards: Shards
  passwords: Pick<PasswordPool, 'hash' | 'verify'>
  gate: LoginPermits
  tokens: TokenIssuer
  passkeys: PasskeyCeremonies | undefined
  oauth: OauthFlow
  settings: AuthRouteSettings
  clock: Clock
  /** Called when a mail was added to the outbox. */
  onMail(): void
  onFailure(
    request: Pick<AuthRequest, 'namespace' | 'origin'>,
    failure: NonNullable<AuthOutcome['failure']>,
  ): void
}

/** Creates the context of the auth routes. */
export function authContext(parts: AuthParts): AuthContext {
  const { shards, passwords, gate, tokens, passkeys, oauth, settings, clock } = parts
  return {
    settings,
    tokens,
    passkeys,
    oauth,
    nowMs: clock,
    random: randomBytes,
    async change({ namespace, origin, principal }, change) {
      const { id, agent } = namespace
      const by = lineageOf(principal)
      const lineage = by === undefined ? {} : { line: by }
      const command = {
        kind: 'authChange',
        agent,
        namespace: id,
        change,
        origin,
        ...lineage,
        options: {},
      } as const
      const outcome = await shards.request(agent, command)
      if (outcome.kind === 'auth' && outcome.failure !== undefined)
        parts.onFailure({ namespace, origin }, outcome.failure)
      if (outcome.kind === 'auth' && outcome.endedUser !== undefined)
        await endUploads(shards, `user:${id}:${outcome.endedUser}`)
      const answer = answerOf(outcome, parts)
      if (change.kind === 'userDelete' && !('code' in answer) && answer.kind === 'user')
        await endAuthors(shards, [`user:${id}:${answer.user.userId}`])
      return answer
    },
    async lookUp({ namespace, origin }, lookup) {
      const { id, agent } = namespace
      const caller = `ip:${origin.ip}`
      return answerOf(
        await shards.request(agent, { kind: 'authLookup', agent, namespace: id, lookup, caller }),
        parts,
      )
    },
    passwords: {
      hash: (password) => passwords.hash({ password }),
      verify: (password, encoded) =>
        passwords.verify({ password, ...(encoded !== undefined && { encoded }) }),
    },
    enter: (key) => gate.enter(key),
  }
}

/** The lineage of the key that requests a change; undefined for users and without a credential. */
function lineageOf({ id, key }: Principal): string | undefined {
  return id === 'root' ? id : key?.row.line
}

/** The answer of a namespace; its revocations are already applied on every front. */
function answerOf(outcome: Outcome, parts: AuthParts): AuthAnswer | Refusal {
  if (outcome.kind !== 'auth') return unexpected(outcome)
  if (outcome.mailed === true) parts.onMail()
  return outcome.answer
}

const disabled = refuse('auth_disabled', 'Sign-in is disabled on this server (SERVICE_AUTH_ENABLED)')
const unlicensed = refuse(
  'license_required',
  'Sign-in needs a license: this server has no valid SERVICE_LICENSE_KEY',
)

/**
 * Returns a function that says why the auth routes are not serving: 404 auth_disabled or 402
 * license_required. Routes that end access serve without a license as well (src/front/routes/auth-route.ts).
 * @param license undefined if there is no valid license
 */
export function activation(
  enabled: boolean,
  license: License | undefined,
  clock: Clock,
): () => Refusal | undefined {
  if (!enabled) return () => disabled
  return () => (license !== undefined && license.expiresAtMs > clock() ? undefined : unlicensed)
}

/**
 * Knows which organisms have an auth namespace. A namespace is never removed, so an existing one is looked up
 * once; a missing one is looked up each time, before anything more expensive is done.
 */
export class Namespaces {
  readonly #shards: Pick<Shards, 'request'>
  readonly #existing = boundedCache<string, true>(limits.namespacesKnownMax)

  constructor(shards: Pick<Shards, 'request'>) {
    this.#shards = shards
  }

  /**
   * Why the namespace cannot be used: 404 organism_not_found or namespace_not_found, 503 if its shard cannot
   * answer. Returns undefined without a promise for a known one.
   */
  missing(namespace: Namespace): undefined | Promise<Refusal | undefined> {
    const { id } = namespace
    return id === '' || this.#existing.get(id) === true ? undefined : this.#lookUp(namespace)
  }

  async #lookUp({ id, agent }: Namespace): Promise<Refusal | undefined> {
    const lookup = { kind: 'keyEpochs' } as const
    const outcome = await this.#shards.request(agent, { kind: 'authLookup', agent, namespace: id, lookup })
    if (outcome.kind !== 'auth') return unexpected(outcome)
    this.#existing.set(id, true)
    return undefined
  }
}
