import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../base/clock.js'
import type { Refusal } from '../../../base/errors.js'
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
