import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { registerMany, tryLogin } from '../support/auth/accounts.js'
import { ask } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { interleavedTimes, type InterleavedTimes } from '../support/shard/interleaved.js'
import { rankTest } from '../support/auth/rank-test.js'
import { runSeed } from '../support/run-seed.js'
import { call, type TestAnswer, type TestServer } from '../support/server/server.js'

/*
 * Neither an answer nor its time reveals whether there is an account (docs/adr/0032-strangers-and-devices.md). The
 * times are compared by a rank test, which is statistics: of two runs that are alike it finds one in a hundred to
 * differ, so only two such findings in a row fail, one in ten thousand.
 */

const SAMPLES = 200
const P_MIN = 0.01
/** A difference that the test must see, else it says nothing. */
const SHIFT_MS = 2
/** Where a busy machine hides such a shift, samples are added until they show it, this often at most. */
const ROUNDS_MAX = 5

const random = seededRandom(runSeed('times of sign-ins'))

let server: TestServer

beforeAll(async () => {
  // One failed login each is what is timed: nothing is to lock.
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

/** Addresses of one length that nobody else uses. */
function addresses(kind: string, run: string): string[] {
  return Array.from(
    { length: SAMPLES },
    (_none, n) => `${kind}-${run}-${String(n).padStart(3, '0')}@example.org`,
  )
}

/** The answer without what differs between any two of them. */
function comparable({ status, body, headers }: TestAnswer): unknown {
  const { request_id: _id, token, ...rest } = body
  return { status, ...rest, token: typeof token, type: headers.get('content-type') }
}

/** Times the attempt for known and unknown e-mails, one each. Every answer must be the same. */
async function measure(attempt: Attempt, run: string): Promise<InterleavedTimes> {
  const known = addresses('known', run)
  await registerMany(server, known)
  const expected = comparable(await attempt(`nobody-${run}-000@example.org`))
  const calls = (emails: string[]) =>
    emails.map((email) => async () => expect(comparable(await attempt(email))).toEqual(expected))
  return interleavedTimes({ one: calls(known), other: calls(addresses('other', run)) }, random)
}

/** How likely known and unknown e-mails differ as much by chance, by as many samples as it takes to see a shift. */
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
    'cannot be told from known ones by the answer to %s, nor by its time',
    { timeout: 300_000 },
    async (name, attempt) => {
      const place = attempts.findIndex(([one]) => one === name)
      const first = await compare(attempt, `${place}a`)
      const p = first > P_MIN ? first : await compare(attempt, `${place}b`)
      expect(p).toBeGreaterThan(P_MIN)
    },
  )

  it('are answered as a wrong password is, word for word', async () => {
    const [{ email } = { email: '' }] = await registerMany(server, ['word@example.org'])
    const wrong = await tryLogin(server, email, 'not the password')
    const unknown = await tryLogin(server, 'ward@example.org', 'not the password')
    const linkOnly = await ask(server, 'POST /v1/auth/magic-link/send', {
      key: null,
      body: { email: 'link@example.org' },
    })
    await ask(server, 'POST /v1/auth/magic-link/verify', { key: null, body: { token: linkOnly.body.token } })
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
