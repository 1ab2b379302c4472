import { refuse, type Refusal } from '../../base/errors.js'
import type { CallingFront } from '../../cluster/host.js'
import type { Handlers } from '../../dispatch/calls.js'
import { CallReply } from '../../protocol/call-reply.js'
import { type LoginCalls, loginCalls } from '../../protocol/login-permits.js'
import { memoryOf } from '../../otlp/tasks.js'
import type { Principal } from '../../front/routes/route.js'
import type { AuthServices } from '../auth.js'
import type { MainCalls } from './front-messages.js'
import type { FrontParts, Parts } from '../parts.js'
import type { Services } from '../services.js'

/** Dependencies of the call handlers. */
export interface MainCallParts {
  parts: Pick<Parts, 'apiKeys' | 'shards' | 'threads'> & Pick<FrontParts, 'tickets' | 'readers' | 'decoder'>
  services: Services
  /** Absent while the auth add-on is off. */
  auth: AuthServices | undefined
}

const noAuth = refuse('unavailable', 'The auth add-on is off')
const unknownKey = refuse('unauthorized', 'Unknown key')

/**
 * Handlers for the calls of one front, run in the main thread.
 * @param ended aborts when the front has ended while the process continues; its tickets and logins are released then
 */
export function mainCalls(
  { parts, services, auth }: MainCallParts,
  front: () => CallingFront,
  ended?: AbortSignal,
): Handlers<MainCalls> {
  const { tickets, apiKeys, readers, decoder } = parts
  const { readiness, server, metrics, metricFamilies, lastUses, logHead } = services
  /** Releases of the tickets that streams of the front hold. */
  const holds = new Map<number, () => void>()
  ended?.addEventListener('abort', () => {
    for (const release of holds.values()) release()
    holds.clear()
  })
  /** The key as this thread knows it; the call contains a copy. */
  const own = (principal: Principal): Principal | Refusal =>
    principal.key === undefined ? principal : (apiKeys.byId(principal.id) ?? unknownKey)
  return {
    ticketIssue(principal) {
      const known = own(principal)
      return 'code' in known ? known : tickets.issue(known)
    },
    async ticketRedeem({ ticket, use }) {
      const found = await tickets.redeem(ticket, use)
      return new CallReply(found, { caller: found?.id })
    },
    ticketHold({ ticket, principal, hold }) {
      const release = tickets.hold(ticket, principal)
      if (ended?.aborted === true) release?.()
      else if (release !== undefined) holds.set(hold, release)
    },
    ticketRelease(hold) {
      holds.get(hold)?.()
      holds.delete(hold)
    },
    ...authCalls(auth, ended),
    read: async (call) => new CallReply(await readers.run(call), { caller: call.caller }),
    async otlpDecode(call) {
      const found = await decoder.decode(call)
      return new CallReply(found, { transfer: memoryOf(found) })
    },
    logHead: async (head) => (await logHead?.(head)) ?? true,
    readiness,
    server,
    metrics,
    metricFamilies,
    lastUses,
    failed: (stack) => front().failed(new Error(stack)),
    lose: ({ shard, reason }) => parts.threads.lose(shard, reason),
  }
}

type AuthCalls = Pick<Handlers<MainCalls>, keyof LoginCalls | 'hashPassword' | 'verifyPassword' | 'mailWaits'>

function authCalls(auth: AuthServices | undefined, gone: AbortSignal | undefined): AuthCalls {
  return {
    ...loginCalls(auth?.gate ?? { enter: async () => noAuth }, gone),
    hashPassword: (task) => auth?.passwords.hash(task) ?? noAuth,
    verifyPassword: (task) => auth?.passwords.verify(task) ?? noAuth,
    mailWaits: () => auth?.onMail(),
  }
}
