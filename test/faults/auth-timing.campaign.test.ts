import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { registerMany, tryLogin } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { interleavedTimes, type InterleavedTimes } from '../support/shard/interleaved.js'
import { rankTest } from '../support/auth/rank-test.js'
import { runSeed } from '../support/run-seed.js'
import { call, type TestAnswer, type TestServer } from '../support/server/server.js'

/*
 * Neither an answer nor its time reveals whether an account exists (docs/adr/0032-strangers-and-devices.md).
 * The times are compared by a rank test. With equal distributions it reports a difference once in a hundred
 * runs, so the test fails only after two such results in a row, once in ten thousand.
 */

const SAMPLES = 200
const P_MIN = 0.01
/** A difference that the rank test must be able to detect. */
const SHIFT_MS = 2
/** If a busy machine hides such a difference, this many rounds of samples are added at most. */
const ROUNDS_MAX = 5

const random = seededRandom(runSeed('times of sign-ins'))

let server: TestServer

beforeAll(async () => {
  // The test times one failed login for each e-mail, so lockout must not happen.
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2', SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '1000' } })
})
afterAll(() => server.stop())

type Attempt = (email: string) => Promise<TestAnswer>

const post = (path: string, body: unknown) => call(server, `POST ${path}`, { key: null, body })

const attempts: [string, Attempt][] = [
  ['a login', (email) => post('/v1/auth/login', { email, password: 'not the password of anyone' })],
  ['asking for a magic link', (email) => post('/v1/auth/magic-link/send', { email })],
  ['asking for a reset', (email) => post('/v1/auth/password/reset-request', { email })],
]

/** Unused addresses of equal length. */
function addresses(kind: string, run: string): string[] {
  return Array.from(
    { length: SAMPLES },
    (_none, n) => `${kind}-${run}-${String(n).padStart(3, '0')}@example.org`,
  )
}

/** The answer without the parts that differ between any two answers. */
function comparable({ status, body, headers }: TestAnswer): unknown {
  const { request_id: _id, token, ...rest } = body
  return { status, ...rest, token: typeof token, type: headers.get('content-type') }
}

/** Measures attempts for known and unknown e-mails alternately. All answers must be the same. */
async function measure(attempt: Attempt, run: string): Promise<InterleavedTimes> {
  const known = addresses('known', run)
  await registerMany(server, known)
  const expected = comparable(await attempt(`unused-${run}-000@example.org`))
  const calls = (emails: string[]) =>
    emails.map((email) => async () => expect(comparable(await attempt(email))).toEqual(expected))
  return interleavedTimes({ one: calls(known), other: calls(addresses('other', run)) }, random)
}

/**
 * The p-value of the difference between known and unknown e-mails, with enough samples to detect `SHIFT_MS`.
 */
async function compare(attempt: Attempt, run: string): Promise<number> {
  const all: InterleavedTimes = { one: [], other: [] }
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const times = await measure(attempt, `${run}${round}`)
    all.one.push(...times.one)
    all.other.push(...times.other)
    const shifted = all.one.map((ms) => ms + SHIFT_MS)
    if (rankTest(shifted, all.other).p >= P_MIN) continue
    const { p } = rankTest(all.one, all.other)
    console.log(`p = ${p} of ${all.one.length} samples each`)
    return p
  }
  throw new Error(`Expected ${ROUNDS_MAX * SAMPLES} samples to show a shift of ${SHIFT_MS} ms`)
}

describe('unknown e-mails', () => {
  it.each(attempts)(
    'cannot be distinguished from known ones by the answer to %s or its time',
    { timeout: 300_000 },
    async (name, attempt) => {
      const place = attempts.findIndex(([one]) => one === name)
      const first = await compare(attempt, `${place}a`)
      const p = first > P_MIN ? first : await compare(attempt, `${place}b`)
      expect(p).toBeGreaterThan(P_MIN)
    },
  )

  it('get the same answer as a wrong password', async () => {
    const [{ email } = { email: '' }] = await registerMany(server, ['word@example.org'])
    const wrong = await tryLogin(server, email, 'not the password')
    const unknown = await tryLogin(server, 'ward@example.org', 'not the password')
    const linkOnly = await checkedCall(server, 'POST /v1/auth/magic-link/send', {
      key: null,
      body: { email: 'link@example.org' },
    })
    await checkedCall(server, 'POST /v1/auth/magic-link/verify', {
      key: null,
      body: { token: linkOnly.body.token },
    })
    const withoutPassword = await tryLogin(server, 'link@example.org', 'not the password')
    expect(wrong.status).toBe(401)
    expect(wrong.body.code).toBe('invalid_credentials')
    const names = ({ headers }: TestAnswer) => [...headers.keys()].toSorted()
    for (const other of [unknown, withoutPassword]) {
      expect(comparable(other)).toEqual(comparable(wrong))
      expect(names(other)).toEqual(names(wrong))
      expect(other.text.length).toBe(wrong.text.length)
    }
  })
})
