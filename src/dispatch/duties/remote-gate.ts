import type { Refusal } from '../../base/errors.js'
import type { LoginAttempt } from './login-gate.js'

/** A login for the gate of another thread or node, which calls back with the number of the attempt. */
export interface RemoteLogin {
  key: string
  attempt: number
}

/** The result of a look, as the remote gate receives it. */
export type GateLook = { kind: 'open'; failures: number } | { kind: 'answered' }

/** Sends the logins of a front through the gate of another thread or node. */
export class RemoteGate {
  readonly #login: (login: RemoteLogin) => Promise<Refusal | undefined>
  readonly #running = new Map<number, RunningAttempt>()
  #nextAttempt = 0

  /** @param login calls the remote gate */
  constructor(login: (login: RemoteLogin) => Promise<Refusal | undefined>) {
    this.#login = login
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
          if (state === undefined) throw new Error('Expected a look before the password is verified')
          answer = { found: await attempt.verify(state.known) }
        }),
    })
    try {
      const refusal = await this.#login({ key, attempt: number })
      if (refusal !== undefined) return refusal
    } catch (error) {
      throw failure?.error ?? error
    } finally {
      this.#running.delete(number)
    }
    if (answer === undefined) throw new Error('The login gate returned without an answer')
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
    if (attempt === undefined) throw new Error(`Login attempt ${number} has ended`)
    return attempt
  }
}

interface RunningAttempt {
  look(): Promise<GateLook>
  verify(): Promise<void>
}
