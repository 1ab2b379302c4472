import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { type Account, logIn, outcomeOf, register, tryLogin } from '../support/auth/accounts.js'
import { newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { isCaughtUp, numbersOf, openStream } from '../support/http/events.js'
import { eventually } from '../support/eventually.js'
import { MovedClock, movedClockOptions } from '../support/faults/moved-clock.js'
import { call, startServer, type TestAnswer, type TestServer } from '../support/server/server.js'

/*
 * The clock jumps by hours, forward and back, while a server runs and between two runs. Readings on strands
 * still rise, acknowledged writes are not lost, and requests that were refused because of the clock succeed
 * once it is right again (docs/adr/0006-clocks.md).
 */

const SECOND_MS = 1_000
const HOUR_MS = 3_600_000
const agent = 'jumping'

let directory: string
let clock: MovedClock
let server: TestServer
/** The right time, to which the clock returns. */
const rightMs = Math.floor(Date.now() / SECOND_MS) * SECOND_MS

async function start(env: Record<string, string> = {}, serve = startServer): Promise<void> {
  server = await serve({
    dataDir: join(directory, 'data'),
    nodeOptions: movedClockOptions,
    env: { ...clock.env, SERVICE_SHARDS: '2', ...env },
  })
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-clock-'))
  clock = new MovedClock(directory, rightMs)
})

afterEach(async () => {
  await server.halt('SIGKILL')
  clock.close()
  rmSync(directory, { recursive: true, force: true })
})

/** Writes number `n`, with its own idempotency key. */
function write(n: number): Promise<TestAnswer> {
  return call(server, `POST /v1/collections/${agent}/records`, {
    body: { data: { n } },
    headers: { 'idempotency-key': `write-${n}` },
  })
}

/** The clock reading of a successful write. */
async function written(n: number): Promise<string> {
  const { status, body, text } = await write(n)
  expect(status, text).toBe(201)
  return body.timestamp_hlc
}

function readingOf(ms: number): string {
  return `${ms.toString(16).padStart(12, '0')}-0000`
}

/** The numbers and clock readings on the strand, after verifying it. */
async function strand(): Promise<{ numbers: number[]; readings: string[] }> {
  const { text } = await call(server, `GET /v1/strand/export?agent=${agent}`)
  const lines = text.trimEnd().split('\n')
  expect(await verifyExport(lines)).toMatchObject({ ok: true })
  const records = lines.slice(1, -1).map((line): { h: string; body: string } => JSON.parse(line))
  return {
    numbers: records.slice(1).map(({ body }) => JSON.parse(body).n),
    readings: records.map(({ h }) => /^hlc (.*)$/m.exec(h)?.[1] ?? ''),
  }
}

async function expectRising(numbers: number): Promise<void> {
  const found = await strand()
  expect(found.numbers).toEqual(Array.from({ length: numbers }, (_none, n) => n))
  expect(found.readings).toEqual([...new Set(found.readings)].sort())
}

async function expectClockSkew(answer: Promise<TestAnswer>): Promise<void> {
  expect(await outcomeOf(answer)).toBe('503 clock_skew')
}

describe('a clock that jumps under a server', { timeout: 180_000 }, () => {
  it('gives records later readings after a jump forward, and blocks only writes after a jump back', async () => {
    // Without the server log, which could take a reading that the test expects for a write while the clock is
    // stopped.
    await start({ SERVICE_LOG_INTERVAL_SECS: '0' })
    await written(0)
    const stream = await openStream(server, `/v1/agents/${agent}/stream?since=0`)
    await stream.until(isCaughtUp)
    clock.set(rightMs + 5 * HOUR_MS)
    expect(await written(1)).toBe(readingOf(rightMs + 5 * HOUR_MS))
    clock.set(rightMs)
    await expectClockSkew(write(2))
    expect((await call(server, 'GET /readyz', { key: null })).status).toBe(200)
    expect((await call(server, `GET /v1/agents/${agent}/head`)).body.seq).toBe(2)
    expect((await strand()).numbers).toEqual([0, 1])
    // An idempotent repetition still gets its answer.
    expect((await write(1)).headers.get('idempotency-replayed')).toBe('true')
    clock.set(rightMs + 5 * HOUR_MS - 60 * SECOND_MS - 1)
    await expectClockSkew(write(2))
    // If the clock is less than a minute behind the last record, the strand continues after it.
    clock.set(rightMs + 5 * HOUR_MS - 60 * SECOND_MS + 1)
    expect(await written(2)).toBe(`${readingOf(rightMs + 5 * HOUR_MS).slice(0, -4)}0001`)
    clock.set(rightMs + 6 * HOUR_MS)
    expect(await written(3)).toBe(readingOf(rightMs + 6 * HOUR_MS))
    await expectRising(4)
    await stream.until((events) => numbersOf(events).length >= 4)
    expect(numbersOf(stream.events)).toEqual([0, 1, 2, 3])
    stream.close()
  })

  it('never makes a strand go back or a start fail, over jumps and restarts of both kinds', async () => {
    let n = 0
    let latestMs = 0
    const jumps = [0, -3, 4, 7, -9, 12].map((hours) => hours * HOUR_MS)
    for (const [index, jumpMs] of jumps.entries()) {
      const nowMs = rightMs + jumpMs
      clock.set(nowMs)
      await start()
      if (nowMs < latestMs - 60 * SECOND_MS) {
        await expectClockSkew(write(n))
        expect((await call(server, `GET /v1/agents/${agent}/head`)).body.seq).toBe(n)
      } else {
        await written(n++)
        latestMs = nowMs
      }
      expect((await call(server, 'GET /readyz', { key: null })).status).toBe(200)
      await server.halt(index % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
    }
    await start()
    await expectRising(n)
    expect(n).toBeGreaterThan(3)
  })

  it('delays proposals while it is back, and applies them at their time', async () => {
    await start({ SERVICE_GOVERNED_AUTO_APPROVE_SECS: '60' })
    await newAgent(server, agent, 'governed')
    const { body: record } = await write(0)
    const path = `/v1/agents/${agent}/records/${record.id}`
    const { body: proposal } = await call(server, `DELETE ${path}`)
    expect(proposal.effective_at_ms).toBe(rightMs + 60 * SECOND_MS)
    const deleted = async () => (await call(server, `GET ${path}`)).body.deleted
    clock.set(rightMs - 5 * HOUR_MS)
    await server.halt()
    // The server applies due proposals before it listens.
    await start({ SERVICE_GOVERNED_AUTO_APPROVE_SECS: '60' })
    expect(await deleted()).toBe(false)
    clock.set(rightMs + 59 * SECOND_MS)
    await server.halt()
    await start({ SERVICE_GOVERNED_AUTO_APPROVE_SECS: '60' })
    expect(await deleted()).toBe(false)
    clock.set(rightMs + 60 * SECOND_MS)
    await eventually(deleted)
  })

  it('determines the lifetime of idempotency keys, and does not stop the server log', async () => {
    await start()
    const first = await write(0)
    clock.set(rightMs + 23 * HOUR_MS)
    expect((await write(0)).body).toEqual(first.body)
    clock.set(rightMs + 25 * HOUR_MS)
    const again = await write(0)
    expect(again.headers.get('idempotency-replayed')).toBeNull()
    clock.set(rightMs)
    expect((await write(0)).body).toEqual(again.body)
    await expectClockSkew(write(1))
    clock.set(rightMs + 26 * HOUR_MS)
    await written(1)
    await eventually(async () => {
      const { text } = await call(server, 'GET /metrics', { key: null })
      const completeSecs = /^strandfast_log_complete_timestamp_seconds (\S+)$/m.exec(text)?.[1]
      return Number(completeSecs) === (rightMs + 26 * HOUR_MS) / SECOND_MS
    })
  })

  it('never admits more requests than the rate limit, or blocks a client for longer', async () => {
    await start({ SERVICE_RATE_LIMIT_RPS: '2', SERVICE_RATE_LIMIT_BURST: '6' })
    /** The number of requests that are admitted while the clock is stopped. */
    const admitted = async () => {
      let count = 0
      while ((await call(server, 'GET /healthz', { key: null })).status === 200) count++
      return count
    }
    expect(await admitted()).toBe(2)
    clock.set(rightMs + 5 * HOUR_MS)
    expect(await admitted()).toBe(6)
    clock.set(rightMs)
    expect(await admitted()).toBe(0)
    clock.set(rightMs + SECOND_MS)
    expect(await admitted()).toBe(2)
    clock.set(rightMs - 5 * HOUR_MS)
    const { status, headers } = await call(server, 'GET /healthz', { key: null })
    expect([status, headers.get('retry-after')]).toEqual([429, '1'])
    clock.set(rightMs - 5 * HOUR_MS + SECOND_MS)
    expect(await admitted()).toBe(2)
  })
})

describe('the tokens of users, when the clock jumps', () => {
  const hourly = { SERVICE_AUTH_JWT_EXPIRY_SECS: '3600' }
  let ann: Account
  let ben: Account

  const me = ({ token }: Pick<Account, 'token'>) => outcomeOf(call(server, 'GET /v1/auth/me', { key: token }))
  const logOut = ({ token }: Pick<Account, 'token'>) =>
    outcomeOf(call(server, 'POST /v1/auth/logout', { key: token, body: {} }))
  const refresh = ({ refreshToken }: Pick<Account, 'refreshToken'>) =>
    call(server, 'POST /v1/auth/refresh', { key: null, body: { refresh_token: refreshToken } })

  beforeEach(async () => {
    await start(hourly, startAuthServer)
    ann = await register(server, 'ann@example.org')
    ben = await register(server, 'ben@example.org')
  })

  it('are valid for one hour of the clock, and sign-ins fail without side effects while it is back', async () => {
    expect(await me(ann)).toBe('200')
    clock.set(rightMs + 5 * HOUR_MS)
    expect(await me(ann)).toBe('401 token_expired')
    const later = await logIn(server, ann)
    clock.set(rightMs)
    expect(await me(ann)).toBe('200')
    await expectClockSkew(tryLogin(server, ann.email, ann.password))
    await expectClockSkew(refresh(ben))
    clock.set(rightMs + 5 * HOUR_MS + SECOND_MS)
    expect(await me(later)).toBe('200')
    expect((await refresh(ben)).status).toBe(200)
    await logIn(server, ann)
  })

  it('stay revoked over a restart, even after the clock was ahead and expired revocations were removed', async () => {
    const again = await logIn(server, ben)
    expect(await logOut(ann)).toBe('200')
    clock.set(rightMs + 5 * HOUR_MS)
    const later = await logIn(server, ben)
    // A new revocation removes expired ones.
    expect(await logOut(later)).toBe('200')
    clock.set(rightMs)
    expect(await me(again)).toBe('200')
    expect(await me(ann)).toBe('401 token_revoked')
    await server.halt()
    await start(hourly, startAuthServer)
    expect(await me(again)).toBe('200')
    expect(await me(ann)).toBe('401 token_revoked')
  })

  it('stay revoked until they have expired, if the clock was a little behind at the revocation', async () => {
    clock.set(rightMs - 59 * SECOND_MS)
    expect(await logOut(ann)).toBe('200')
    clock.set(rightMs + HOUR_MS - 30 * SECOND_MS)
    expect(await logOut(ben)).toBe('200')
    expect(await me(ann)).toBe('401 token_revoked')
    await server.halt()
    await start(hourly, startAuthServer)
    expect(await me(ann)).toBe('401 token_revoked')
    clock.set(rightMs + HOUR_MS)
    expect(await me(ann)).toBe('401 token_expired')
  })
})
