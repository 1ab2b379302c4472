import { steadyClock } from '../../base/clock.js'
import type { Calls } from '../../dispatch/calls.js'
import { remotePermits } from '../../protocol/login-permits.js'
import type { Readers } from '../../protocol/reader-tasks.js'
import type { ApiKeys } from '../../front/http/auth/api-keys.js'
import { sharedAnswer } from '../../front/http/shared-answer.js'
import type { StreamTickets } from '../../front/http/streams/tickets.js'
import type { AuthServices } from '../auth.js'
import type { FrontCalls, FrontWorkerData, MainCalls } from './front-messages.js'
import type { Services } from '../services.js'

export type MainClient = Pick<Calls<FrontCalls, MainCalls>, 'call'>

/** The services of the main thread, for a front in another thread. */
export function remoteServices({ call }: MainClient, { hasServerLog }: FrontWorkerData): Services {
  // The main thread caches the answers; requests that wait for the same call share it.
  const sharing = { keptMs: 0, clock: steadyClock }
  return {
    readiness: sharedAnswer(() => call('readiness', undefined), sharing),
    server: sharedAnswer(() => call('server', undefined), sharing),
    metrics: sharedAnswer(() => call('metrics', undefined), sharing),
    metricFamilies: (names) => call('metricFamilies', names),
    lastUses: (keyIds) => call('lastUses', keyIds),
    logHead: hasServerLog ? (head) => call('logHead', head) : undefined,
  }
}

/** The reader pool of the main thread. */
export function remoteReaders({ call }: MainClient): Readers {
  return { run: (read) => call('read', read) }
}

/**
 * The tickets of the main thread; each works at every front. If a key opens a stream by a ticket, this front
 * must know the key: a deleted key opens nothing.
 */
export function remoteTickets(
  { call }: MainClient,
  apiKeys: ApiKeys,
  failed: (error: unknown) => void,
): StreamTickets {
  let holds = 0
  return {
    issue: (principal) => call('ticketIssue', principal),
    async redeem(ticket, use) {
      const found = await call('ticketRedeem', { ticket, use })
      return found?.key === undefined ? found : apiKeys.byId(found.id)
    },
    hold(ticket, principal) {
      const hold = holds++
      call('ticketHold', { ticket, principal, hold }).catch(failed)
      return () => void call('ticketRelease', hold).catch(failed)
    },
  }
}

export function remoteAuthServices(
  { call }: MainClient,
  { license, mailOn }: NonNullable<FrontWorkerData['auth']>,
): AuthServices {
  return {
    passwords: {
      hash: (task) => call('hashPassword', task),
      verify: (task) => call('verifyPassword', task),
    },
    gate: remotePermits(call),
    license,
    mailOn,
    onMail: () => void call('mailWaits', undefined).catch(() => undefined),
  }
}
