import { refuse, type Refusal } from '../../base/errors.js'
import type { Calls, Handlers } from '../../dispatch/calls.js'
import type { Principal } from '../../front/routes/route.js'
import type { AuthServices } from '../auth.js'
import type { MainCalls, PeerCalls } from './front-messages.js'
import type { FrontParts, Parts } from '../parts.js'
import type { Services } from '../services.js'

/** A front, as its calls see it. */
export interface CallingFront extends Pick<Calls<MainCalls, PeerCalls>, 'call'> {
  /** It cannot go on. */
  failed(error: Error): void
}

/** What answering the calls of a front needs. */
export interface MainCallParts {
  parts: Pick<Parts, 'apiKeys' | 'shards' | 'threads'> & Pick<FrontParts, 'tickets' | 'readers'>
  services: Services
  /** Absent while the auth add-on is off. */
  auth: AuthServices | undefined
}

const noAuth = refuse('unavailable', 'The auth add-on is off')
const unknownKey = refuse('unauthorized', 'Expected a key that this server knows')

/**
 * Answers the calls of one front, in the main thread, which keeps what all fronts share.
 * @param gone aborts when the front has gone, where the process goes on without it: it holds nothing any more
 */
export function mainCalls(
  { parts, services, auth }: MainCallParts,
  front: () => CallingFront,
  gone?: AbortSignal,
): Handlers<MainCalls> {
  const { tickets, apiKeys, readers } = parts
  const { readiness, server, metrics, metricFamilies, lastUses, tellHead } = services
  /** Ends of the streams of the front that hold a ticket. */
  const holds = new Map<number, () => void>()
  gone?.addEventListener('abort', () => {
    for (const release of holds.values()) release()
    holds.clear()
  })
  /** The key as this thread knows it; what came with the call is a copy. */
  const own = (principal: Principal): Principal | Refusal =>
    principal.key === undefined ? principal : (apiKeys.ofId(principal.id) ?? unknownKey)
  return {
    ticketIssue(principal) {
      const known = own(principal)
      return 'code' in known ? known : tickets.issue(known)
    },
    ticketRedeem: ({ ticket, use }) => tickets.redeem(ticket, use),
    ticketHold({ ticket, principal, hold }) {
      const release = tickets.hold(ticket, principal)
      if (gone?.aborted === true) release?.()
      else if (release !== undefined) holds.set(hold, release)
    },
    ticketRelease(hold) {
      holds.get(hold)?.()
      holds.delete(hold)
    },
    ...authCalls(auth, front),
    readersFull: () => readers.isFull(),
    read: (call) => readers.run(call),
    tellHead: async (head) => (await tellHead?.(head)) ?? true,
    readiness,
    server,
    metrics,
    metricFamilies,
    lastUses,
    failed: (stack) => front().failed(new Error(stack)),
    lose: ({ shard, reason }) => parts.threads.lose(shard, reason),
  }
}

type AuthCalls = Pick<Handlers<MainCalls>, 'login' | 'hashPassword' | 'verifyPassword' | 'mailWaits'>

function authCalls(auth: AuthServices | undefined, front: () => CallingFront): AuthCalls {
  return {
    async login({ key, attempt }) {
      if (auth === undefined) return noAuth
      return auth.gate.run<undefined, undefined>(key, {
        async look() {
          const look = await front().call('look', attempt)
          return look.kind === 'open' ? { ...look, state: undefined } : { ...look, answer: undefined }
        },
        async verify() {
          await front().call('verify', attempt)
          return undefined
        },
      })
    },
    hashPassword: (task) => auth?.passwords.hash(task) ?? noAuth,
    verifyPassword: (task) => auth?.passwords.verify(task) ?? noAuth,
    mailWaits: () => auth?.onMail(),
  }
}
