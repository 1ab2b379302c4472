import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../base/clock.js'
import { type Refusal, refuse } from '../../../base/errors.js'
import { endAuthors } from '../../../dispatch/ended-authors.js'
import type { LoginGate } from '../../../dispatch/duties/login-gate.js'
import type { PasswordPool } from '../../../dispatch/pools/password-pool.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { AuthAnswer, AuthOutcome } from '../../../protocol/auth-messages.js'
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

/** What auth routes work with. */
export interface AuthParts {
  shards: Shards
  passwords: Pick<PasswordPool, 'hash' | 'verify'>
  gate: Pick<LoginGate, 'run'>
  tokens: TokenIssuer
  /** Undefined while passkeys are not configured. */
  passkeys: PasskeyCeremonies | undefined
  oauth: OauthFlow
  settings: AuthRouteSettings
  clock: Clock
  /** Called when a mail was put into the outbox. */
  onMail(): void
  /** Called when a sign-in has failed. */
  onFailure(
    request: Pick<AuthRequest, 'namespace' | 'origin'>,
    failure: NonNullable<AuthOutcome['failure']>,
  ): void
}

/** The working parts behind the auth routes. */
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
      const by = lineOfKey(principal)
      const line = by === undefined ? {} : { line: by }
      const command = {
        kind: 'authChange',
        agent,
        namespace: id,
        change,
        origin,
        ...line,
        options: {},
      } as const
      const outcome = await shards.ask(agent, command)
      if (outcome.kind === 'auth' && outcome.failure !== undefined)
        parts.onFailure({ namespace, origin }, outcome.failure)
      const answer = take(outcome, parts)
      if (change.kind === 'userDelete' && !('code' in answer) && answer.kind === 'user')
        await endAuthors(shards, [`user:${id}:${answer.user.userId}`])
      return answer
    },
    async look({ namespace, origin }, lookup) {
      const { id, agent } = namespace
      const caller = `ip:${origin.ip}`
      return take(
        await shards.ask(agent, { kind: 'authLookup', agent, namespace: id, lookup, caller }),
        parts,
      )
    },
    passwords: {
      hash: (password) => passwords.hash({ password }),
      verify: (password, encoded) =>
        passwords.verify({ password, ...(encoded !== undefined && { encoded }) }),
    },
    attempt: (key, attempt) => gate.run(key, attempt),
  }
}

/** The line of the key by which a change is asked for; undefined for users, and without a credential. */
function lineOfKey({ id, key }: Principal): string | undefined {
  return id === 'root' ? id : key?.row.line
}

/** The answer of a namespace; its revocations have taken effect on every front. */
function take(outcome: Outcome, parts: AuthParts): AuthAnswer | Refusal {
  if (outcome.kind !== 'auth') return unexpected(outcome)
  if (outcome.mailed === true) parts.onMail()
  return outcome.answer
}

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

/**
 * Which organisms have an auth namespace. A namespace that exists stays, so its shard is asked once; for one that does
 * not exist the shard is asked each time, before anything that costs more.
 */
export class Namespaces {
  readonly #shards: Pick<Shards, 'ask'>
  readonly #known = boundedCache<string, true>(limits.namespacesKnownMax)

  constructor(shards: Pick<Shards, 'ask'>) {
    this.#shards = shards
  }

  /**
   * Why the namespace cannot be used: 404 organism_not_found or namespace_not_found, 503 when its shard cannot answer.
   * @returns at once for one that is known
   */
  missing(namespace: Namespace): undefined | Promise<Refusal | undefined> {
    const { id } = namespace
    return id === '' || this.#known.get(id) === true ? undefined : this.#ask(namespace)
  }

  async #ask({ id, agent }: Namespace): Promise<Refusal | undefined> {
    const lookup = { kind: 'keyEpochs' } as const
    const outcome = await this.#shards.ask(agent, { kind: 'authLookup', agent, namespace: id, lookup })
    if (outcome.kind !== 'auth') return unexpected(outcome)
    this.#known.set(id, true)
    return undefined
  }
}
