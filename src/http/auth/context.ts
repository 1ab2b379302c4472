import { randomBytes } from 'node:crypto'
import type { Namespace } from '../../auth/namespace.js'
import type { Clock } from '../../base/clock.js'
import type { Refusal } from '../../base/errors.js'
import { LoginGate } from '../../dispatch/login-gate.js'
import type { PasswordPool } from '../../dispatch/password-pool.js'
import type { Shards } from '../../dispatch/shards.js'
import type { AuthAnswer, Revocation } from '../../protocol/auth-messages.js'
import type { Outcome } from '../../protocol/messages.js'
import { unexpected } from '../../routes/answers.js'
import type {
  AuthContext,
  AuthRouteSettings,
  OauthFlow,
  PasskeyCeremonies,
  TokenIssuer,
} from '../../routes/auth-route.js'

/** What auth routes work with. */
export interface AuthParts {
  shards: Shards
  passwords: PasswordPool
  tokens: TokenIssuer
  /** Undefined while passkeys are not configured. */
  passkeys: PasskeyCeremonies | undefined
  oauth: OauthFlow
  settings: AuthRouteSettings
  clock: Clock
  /** Called at revocations: the tokens are refused from now on, and their streams end. */
  onEnded(namespace: Namespace, ended: readonly Revocation[]): void
  /** Called when a mail was put into the outbox. */
  onMail(): void
}

/** The working parts behind the auth routes. */
export function authContext(parts: AuthParts): AuthContext {
  const { shards, passwords, tokens, passkeys, oauth, settings, clock } = parts
  const gate = new LoginGate({ attemptsMax: settings.loginAttemptsMax })
  return {
    settings,
    tokens,
    passkeys,
    oauth,
    nowMs: clock,
    random: randomBytes,
    async change({ namespace, origin }, change) {
      const { id, agent } = namespace
      const command = { kind: 'authChange', agent, namespace: id, change, origin, options: {} } as const
      return take(await shards.ask(agent, command), namespace, parts)
    },
    async look({ namespace }, lookup) {
      const { id, agent } = namespace
      return take(
        await shards.ask(agent, { kind: 'authLookup', agent, namespace: id, lookup }),
        namespace,
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

/** The answer of a namespace; its revocations take effect before anyone sees it. */
function take(outcome: Outcome, namespace: Namespace, parts: AuthParts): AuthAnswer | Refusal {
  if (outcome.kind !== 'auth') return unexpected(outcome)
  if (outcome.ended !== undefined) parts.onEnded(namespace, outcome.ended)
  if (outcome.mailed === true) parts.onMail()
  return outcome.answer
}
