import { steadyClock } from '../../base/clock.js'
import type { Calls } from '../../dispatch/calls.js'
import type { LoginAttempt } from '../../dispatch/duties/login-gate.js'
import type { Readers } from '../../protocol/reader-tasks.js'
import type { Refusal } from '../../base/errors.js'
import type { ApiKeys } from '../../front/http/auth/api-keys.js'
import { sharedAnswer } from '../../front/http/shared-answer.js'
import type { StreamTickets } from '../../front/http/streams/tickets.js'
import type { AuthServices } from '../auth.js'
import type { FrontCalls, FrontGiven, GateLook, MainCalls } from './front-messages.js'
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

/** Logins that a front leads through the gate of the main thread. */
export class RemoteGate {
  readonly #call: ToMain['call']
  readonly #running = new Map<number, RunningAttempt>()
  #nextAttempt = 0

  constructor({ call }: ToMain) {
    this.#call = call
  }

  /** As `LoginGate.run`. */
  async run<State, Answer>(key: string, attempt: LoginAttempt<State, Answer>): Promise<Answer | Refusal> {
    const number = this.#nextAttempt++
    let state: { known: State } | undefined
    let answer: { found: Answer } | undefined
    let failure: { error: unknown } | undefined
    const guarded = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      try {
        return await work()
      } catch (error) {
        failure = { error }
        throw error
      }
    }
    this.#running.set(number, {
      look: () =>
        guarded(async () => {
          const look = await attempt.look()
          if (look.kind === 'answered') {
            answer = { found: look.answer }
            return { kind: 'answered' }
          }
          state = { known: look.state }
          return { kind: 'open', failures: look.failures }
        }),
      verify: () =>
        guarded(async () => {
          if (state === undefined) throw new Error('An attempt is looked at before it is verified')
          answer = { found: await attempt.verify(state.known) }
        }),
    })
    try {
      const refusal = await this.#call('login', { key, attempt: number })
      if (refusal !== undefined) return refusal
    } catch (error) {
      throw failure?.error ?? error
    } finally {
      this.#running.delete(number)
    }
    if (answer === undefined) throw new Error('An attempt that the gate let through has its answer')
    return answer.found
  }

  look(number: number): Promise<GateLook> {
    return this.#attempt(number).look()
  }

  verify(number: number): Promise<void> {
    return this.#attempt(number).verify()
  }

  #attempt(number: number): RunningAttempt {
    const attempt = this.#running.get(number)
    if (attempt === undefined) throw new Error('The gate asks about an attempt that has ended')
    return attempt
  }
}

interface RunningAttempt {
  look(): Promise<GateLook>
  verify(): Promise<void>
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
