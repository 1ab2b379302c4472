import { describe, expect, it } from 'vitest'
import { fc } from '../../../../support/fast-check.js'
import type { Refusal } from '../../../../../src/base/errors.js'
import { LoginGate } from '../../../../../src/front/http/auth/login-gate.js'
import { loginCalls, type LoginPermits, remotePermits } from '../../../../../src/protocol/login-permits.js'

type LoginLook<State, Answer> =
  | { kind: 'open'; failures: number; state: State }
  | { kind: 'answered'; answer: Answer }

interface Attempt<State> {
  look(): Promise<LoginLook<State, string>>
  verify(state: State): Promise<string>
}

/** One attempt, as a login makes it. */
async function login<State>(permits: LoginPermits, key: string, { look, verify }: Attempt<State>) {
  const permit = await permits.enter(key)
  if ('code' in permit) return permit
  try {
    for (;;) {
      const found = await look()
      if (found.kind === 'answered') return found.answer
      if (await permit.allows(found.failures)) return await verify(found.state)
    }
  } finally {
    permit.end()
  }
}

/** The permits of a gate, as another thread or node uses them. */
function remote(gate: LoginGate, gone?: AbortSignal): LoginPermits {
  const { loginEnter, loginAllows, loginEnd } = loginCalls(gate, gone)
  return remotePermits(async (name, request) => {
    if (name === 'loginEnter' && typeof request === 'string') return loginEnter(request)
    if (name === 'loginAllows' && typeof request === 'object') return loginAllows(request)
    return typeof request === 'number' ? loginEnd(request) : expect.fail()
  })
}

/** An account that counts failures like a shard, and whose comparisons the test ends. */
class Account {
  failures = 0
  comparing = 0
  comparingMost = 0
  started: number[] = []
  looks = 0
  readonly #ends = new Map<number, () => void>()

  readonly attemptsMax: number

  constructor(attemptsMax: number) {
    this.attemptsMax = attemptsMax
  }

  attempt(name: number, right = false) {
    return {
      look: async (): Promise<LoginLook<number, string>> => {
        this.looks++
        const locked = this.failures >= this.attemptsMax
        return locked
          ? { kind: 'answered', answer: 'locked' }
          : { kind: 'open', failures: this.failures, state: name }
      },
      verify: async (state: number): Promise<string> => {
        this.started.push(state)
        this.comparing++
        this.comparingMost = Math.max(this.comparingMost, this.comparing)
        await new Promise<void>((resolve) => this.#ends.set(state, resolve))
        this.comparing--
        if (right) this.failures = 0
        else this.failures++
        return right ? 'welcome' : 'wrong'
      },
    }
  }

  end(name: number): void {
    const end = this.#ends.get(name)
    if (end === undefined) throw new Error(`Attempt ${name} is not comparing`)
    this.#ends.delete(name)
    end()
  }
}

/** Waits until every promise that can settle has settled. */
async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

const answerOf = (found: string | Refusal) => (typeof found === 'string' ? found : found.code)

describe('LoginGate', () => {
  it('compares at most as many passwords in parallel as failures are allowed', async () => {
    const account = new Account(3)
    const gate = new LoginGate({ attemptsMax: 3 })
    const logins = Array.from({ length: 10 }, (_none, name) => login(gate, 'a', account.attempt(name)))
    await settle()
    expect(account.started).toEqual([0, 1, 2])
    for (const name of [1, 0, 2]) {
      account.end(name)
      await settle()
    }
    expect((await Promise.all(logins)).map(answerOf)).toEqual([
      ...Array.from({ length: 3 }, () => 'wrong'),
      ...Array.from({ length: 7 }, () => 'locked'),
    ])
    expect(account.comparingMost).toBe(3)
  })

  it('counts earlier failures', async () => {
    const account = new Account(5)
    account.failures = 4
    const gate = new LoginGate({ attemptsMax: 5 })
    const first = login(gate, 'a', account.attempt(1))
    const second = login(gate, 'a', account.attempt(2))
    await settle()
    expect(account.started).toEqual([1])
    account.end(1)
    expect(answerOf(await first)).toBe('wrong')
    expect(answerOf(await second)).toBe('locked')
    expect(account.started).toEqual([1])
  })

  it('lets waiting attempts continue in order after a right password', async () => {
    const account = new Account(2)
    account.failures = 1
    const gate = new LoginGate({ attemptsMax: 2 })
    const logins = [1, 2, 3].map((name) => login(gate, 'a', account.attempt(name, true)))
    await settle()
    expect(account.started).toEqual([1])
    account.end(1)
    await settle()
    expect(account.started).toEqual([1, 2, 3])
    account.end(3)
    account.end(2)
    expect((await Promise.all(logins)).map(answerOf)).toEqual(['welcome', 'welcome', 'welcome'])
  })

  it('looks again when an attempt ends during a look', async () => {
    const gate = new LoginGate({ attemptsMax: 2 })
    const account = new Account(2)
    const first = login(gate, 'a', account.attempt(1))
    await settle()
    let finishLook = () => {}
    const looked: number[] = []
    const verify = account.attempt(2).verify
    const second = login(gate, 'a', {
      verify,
      look: async (): Promise<LoginLook<number, string>> => {
        const { failures } = account
        looked.push(failures)
        if (looked.length === 1) await new Promise<void>((resolve) => (finishLook = resolve))
        return { kind: 'open', failures, state: 2 }
      },
    })
    const third = login(gate, 'a', account.attempt(3))
    await settle()
    account.end(1)
    await first
    finishLook()
    await settle()
    // The earlier look would have allowed two: no failures, none running.
    expect(looked).toEqual([0, 1])
    expect(account.started).toEqual([1, 2])
    account.end(2)
    expect(answerOf(await second)).toBe('wrong')
    expect(answerOf(await third)).toBe('locked')
  })

  it('runs e-mails independently', async () => {
    const account = new Account(1)
    const other = new Account(1)
    const gate = new LoginGate({ attemptsMax: 1 })
    const logins = [login(gate, 'a', account.attempt(1)), login(gate, 'b', other.attempt(2))]
    await settle()
    expect([account.started, other.started]).toEqual([[1], [2]])
    account.end(1)
    other.end(2)
    await Promise.all(logins)
  })

  it('lets one attempt through if the account is open despite too many failures', async () => {
    const gate = new LoginGate({ attemptsMax: 1 })
    const found = await login(gate, 'a', {
      look: async () => ({ kind: 'open', failures: 7, state: undefined }) as const,
      verify: async () => 'welcome',
    })
    expect(answerOf(found)).toBe('welcome')
  })

  it('refuses an attempt when the queue of its e-mail or of all e-mails is full', async () => {
    const account = new Account(1)
    const gate = new LoginGate({ attemptsMax: 1, waitingPerKeyMax: 2, waitingMax: 3 })
    const logins = [1, 2, 3].map((name) => login(gate, 'a', account.attempt(name)))
    // None has looked yet, so the first one still counts as waiting.
    expect(await logins[2]).toMatchObject({ code: 'overloaded' })
    await settle()
    const others = ['b', 'c', 'd'].map((key) => ({ key, other: new Account(1) }))
    const more = others.map(({ key, other }) => login(gate, key, other.attempt(4)))
    expect(await more[2]).toMatchObject({ code: 'overloaded' })
    await settle()
    account.end(1)
    for (const { other } of others.slice(0, 2)) other.end(4)
    expect((await Promise.all([...logins.slice(0, 2), ...more.slice(0, 2)])).map(answerOf)).toEqual([
      'wrong',
      'locked',
      'wrong',
      'wrong',
    ])
    expect(others[2]?.other.looks).toBe(0)
  })

  it('continues after a look or a comparison that throws', async () => {
    const gate = new LoginGate({ attemptsMax: 1 })
    const broken = new Error('The shard died')
    const look = async () => ({ kind: 'open', failures: 0, state: undefined }) as const
    const logins = [
      login(gate, 'a', { look: () => Promise.reject(broken), verify: async () => 'x' }),
      login(gate, 'a', { look, verify: () => Promise.reject(broken) }),
      login(gate, 'a', { look, verify: async () => 'welcome' }),
    ]
    const settled = await Promise.allSettled(logins)
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
    expect(gate.laneCount).toBe(0)
  })

  it('holds no state after the last attempt', async () => {
    const account = new Account(2)
    const gate = new LoginGate({ attemptsMax: 2 })
    const logins = [1, 2, 3].map((name) => login(gate, 'a', account.attempt(name)))
    await settle()
    expect(gate.laneCount).toBe(1)
    account.end(1)
    account.end(2)
    await Promise.all(logins)
    expect(gate.laneCount).toBe(0)
  })

  it('never allows more wrong passwords than the lockout, in any interleaving', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }),
        async (scheduler, attemptsMax, rights) => {
          const gate = new LoginGate({ attemptsMax })
          const fronts = [gate, remote(gate)]
          let failures = 0
          let running = 0
          let most = 0
          const pause = (name: string) => scheduler.schedule(Promise.resolve(), name)
          const logins = rights.map((right, nth) =>
            login(fronts[nth % 2] ?? gate, 'a', {
              look: async (): Promise<LoginLook<undefined, string>> => {
                await pause('look begins')
                const seen = failures
                await pause('look ends')
                return seen >= attemptsMax
                  ? { kind: 'answered', answer: 'locked' }
                  : { kind: 'open', failures: seen, state: undefined }
              },
              verify: async () => {
                running++
                most = Math.max(most, failures + running)
                await pause('comparison')
                running--
                if (right) failures = 0
                else failures++
                return right ? 'welcome' : 'wrong'
              },
            }),
          )
          await scheduler.waitFor(Promise.all(logins))
          expect(most).toBeLessThanOrEqual(attemptsMax)
          expect(gate.laneCount).toBe(0)
        },
      ),
      { numRuns: 300 },
    )
  })

  // Otherwise the e-mail could not be used to sign in until the server restarts.
  it('ends the attempts of a front that has ended, running and waiting ones', async () => {
    const gate = new LoginGate({ attemptsMax: 1 })
    const gone = new AbortController()
    const permits = remote(gate, gone.signal)
    const running = await permits.enter('a')
    expect('allows' in running && (await running.allows(0))).toBe(true)
    const first = await permits.enter('a')
    const waiting = 'allows' in first ? first.allows(0) : expect.fail()
    const queued = permits.enter('a')
    gone.abort()
    expect(await waiting).toBe(false)
    await queued
    await settle()
    expect(gate.laneCount).toBe(0)
  })
})
