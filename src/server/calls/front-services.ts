import { steadyClock } from '../../base/clock.js'
import type { Calls } from '../../dispatch/calls.js'
import type { RemoteGate } from '../../dispatch/duties/remote-gate.js'
import type { Readers } from '../../protocol/reader-tasks.js'
import type { ApiKeys } from '../../front/http/auth/api-keys.js'
import { sharedAnswer } from '../../front/http/shared-answer.js'
import type { StreamTickets } from '../../front/http/streams/tickets.js'
import type { AuthServices } from '../auth.js'
import type { FrontCalls, FrontGiven, MainCalls } from './front-messages.js'
import type { Services } from '../services.js'

/** Calls of a front to the main thread. */
export type ToMain = Pick<Calls<FrontCalls, MainCalls>, 'call'>

/** What all fronts share, as a front beside the main thread reaches it. */
export function remoteServices({ call }: ToMain, { hasServerLog }: FrontGiven): Services {
  // The main thread keeps them; requests that wait for the same call share it.
  const kept = { keptMs: 0, clock: steadyClock }
  return {
    readiness: sharedAnswer(() => call('readiness', undefined), kept),
    server: sharedAnswer(() => call('server', undefined), kept),
    metrics: sharedAnswer(() => call('metrics', undefined), kept),
    metricFamilies: (names) => call('metricFamilies', names),
    lastUses: (keyIds) => call('lastUses', keyIds),
    tellHead: hasServerLog ? (head) => call('tellHead', head) : undefined,
  }
}

/** The pool of the main thread for long reads. */
export function remoteReaders({ call }: ToMain): Readers {
  return {
    isFull: () => call('readersFull', undefined),
    run: (read) => call('read', read),
  }
}

/**
 * The tickets of the main thread, each of which works at any front. A key that opens a stream by a ticket is one that
 * this front knows: if it was deleted meanwhile, it opens nothing.
 */
export function remoteTickets(
  { call }: ToMain,
  apiKeys: ApiKeys,
  failed: (error: unknown) => void,
): StreamTickets {
  let holds = 0
  return {
    issue: (principal) => call('ticketIssue', principal),
    async redeem(ticket, use) {
      const found = await call('ticketRedeem', { ticket, use })
      return found?.key === undefined ? found : apiKeys.ofId(found.id)
    },
    hold(ticket, principal) {
      const hold = holds++
      call('ticketHold', { ticket, principal, hold }).catch(failed)
      return () => void call('ticketRelease', hold).catch(failed)
    },
  }
}

/** What fronts share of the auth add-on. */
export function remoteAuthServices(
  { call }: ToMain,
  gate: RemoteGate,
  { license, mailOn }: NonNullable<FrontGiven['auth']>,
): AuthServices {
  return {
    passwords: {
      hash: (task) => call('hashPassword', task),
      verify: (task) => call('verifyPassword', task),
    },
    gate,
    license,
    mailOn,
    onMail: () => void call('mailWaits', undefined).catch(() => undefined),
  }
}
