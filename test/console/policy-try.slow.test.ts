import { decodeJwt } from 'jose'
import type { Browser, Page } from 'playwright-core'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { consoleInput } from '../../scripts/console-input.mjs'
import type { Policy, PolicyClaims } from '../../src/auth/row-policy.js'
import { ServiceClient, type User } from '../../src/client/index.js'
import { readRows, type RecordRow } from '../../src/console/parts/records/record-row.js'
import * as buffer from '../../src/console/agents/rules/buffer.js'
import { claimsOf } from '../../src/console/agents/rules/claims.js'
import { type Asked, Judge, type Judgement, type TriedRecord } from '../../src/console/agents/rules/judge.js'
import { canonicalJson } from '../../src/strand/json.js'
import { usualPassword } from '../support/auth/accounts.js'
import {
  emails,
  policyBodies,
  type PolicyCase,
  policyCases,
  usersMetadata,
} from '../support/console/policy-cases.js'
import { fc } from '../support/fast-check.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { linkIn, type SmtpProcess, startSmtpProcess } from '../support/mail/smtp.js'
import { runSeed } from '../support/run-seed.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { freePort } from '../support/server/free-port.js'
import { type TestServer, call, testRootKey } from '../support/server/server.js'

const CASES = 60
/** They are worked through side by side. */
const AGENTS = 8
const RECORDS = 30
const seed = runSeed('policy-try')

/** What the server said to one request, and what Try has to say to the same. */
interface Told {
  policies: Policy[]
  asked: Asked
  bodies: TriedRecord[]
  allowed: boolean[]
}

/** The console's code, as a script that a page of the test runs. */
declare const tried: { Judge: typeof Judge }

describe('the part of Buffer that rules call', () => {
  const bytes = fc.uint8Array({ maxLength: 40 })
  const range = fc.tuple(fc.nat({ max: 40 }), fc.nat({ max: 40 }))
  const ranges = fc.tuple(range, range)

  it('reads and compares as Node’s does', () => {
    const ofNode = (one: Uint8Array) => Buffer.from(one)
    const own = (one: Uint8Array<ArrayBuffer>) => buffer.Buffer.from(one.buffer, one.byteOffset, one.length)
    fc.assert(
      fc.property(bytes, bytes, ranges, (one, other, [[a, b], [c, d]]) => {
        const [from, to] = [Math.min(a, b, one.length), Math.min(Math.max(a, b), one.length)]
        const [start, end] = [Math.min(c, d, other.length), Math.min(Math.max(c, d), other.length)]
        for (const encoding of ['latin1', 'utf8'] as const)
          expect(own(one).toString(encoding, from, to)).toBe(ofNode(one).toString(encoding, from, to))
        const order = ofNode(one).compare(ofNode(other), start, end, from, to)
        expect(own(one).compare(own(other), start, end, from, to)).toBe(order)
      }),
    )
    for (const text of ['', 'a', 'é\u2028', '\u{1f600}', '\ufeffa', 'x'.repeat(20_000)]) {
      expect([...buffer.Buffer.from(text)]).toEqual([...Buffer.from(text)])
      expect(buffer.Buffer.from(text).toString('latin1')).toBe(Buffer.from(text).toString('latin1'))
      expect(buffer.Buffer.from(text).toString()).toBe(text)
    }
    expect([[0x61], [0x80], [0xc3, 0xa9], [0xc3]].map((one) => buffer.isUtf8(Uint8Array.from(one)))).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect([buffer.isAscii(Uint8Array.of(0x7f)), buffer.isAscii(Uint8Array.of(0x80))]).toEqual([true, false])
  })
})

describe.skipIf(noBrowser)('what Try says', () => {
  let server: TestServer
  let smtp: SmtpProcess
  let browser: Browser
  let page: Page
  let service: ServiceClient
  const tokens: string[] = []
  let claims: PolicyClaims[]

  beforeAll(async () => {
    smtp = await startSmtpProcess(await freePort())
    server = await startAuthServer({
      env: {
        SERVICE_MAIL_ENABLED: 'true',
        SERVICE_MAIL_SMTP_URL: smtp.url,
        SERVICE_MAIL_FROM: 'no-reply@example.org',
        SERVICE_MAIL_LINK_BASE_URL: 'http://127.0.0.1:1',
      },
    })
    service = new ServiceClient({ url: server.url, apiKey: testRootKey })
    for (const [at, email] of emails.entries()) tokens.push(await tokenOf(email, at))
    const { users } = await service.auth.users.list()
    claims = emails.map((email) => claimsOf(named(users, email)))
    browser = await sharedBrowser()
    page = await browser.newPage()
    const bundle = await rolldown({
      ...consoleInput,
      input: `${import.meta.dirname}/../../src/console/agents/rules/judge.ts`,
      preserveEntrySignatures: 'strict',
    })
    const { output } = await bundle.generate({ format: 'iife', name: 'tried', minify: true })
    await page.addScriptTag({ content: output[0].code })
  })

  afterAll(async () => {
    await server?.stop()
    await smtp?.stop()
  })

  /** A real token, made after all was set; the first user came in by a mailed link. */
  async function tokenOf(email: string, at: number): Promise<string> {
    const { app, own } = usersMetadata[at] ?? { app: {}, own: {} }
    const user = new ServiceClient({ url: server.url })
    if (at === 0) {
      await user.auth.magicLink.send(email)
      await user.auth.magicLink.verify(linkIn(await smtp.next()).token)
    } else await user.auth.register({ email, password: usualPassword })
    await service.auth.users.setAppMetadata(email, { ...app })
    await user.auth.updateUserMetadata({ ...own })
    return (await user.auth.refresh()).token
  }

  it('is about the claims that tokens have', () => {
    const carried = tokens.map((token) => {
      const { sub, email, verified_email, app_metadata, user_metadata } = decodeJwt(token)
      return {
        sub,
        email,
        ...(verified_email !== undefined && { verified_email }),
        app_metadata,
        user_metadata,
      }
    })
    expect(claims).toEqual(carried)
    expect(claims.map(({ verified_email: verified }) => verified)).toEqual([
      emails[0],
      ...emails.slice(1).map(() => undefined),
    ])
  })

  it(`is what the server answers, for ${CASES} generated rules, claims and bodies`, async () => {
    const subs = claims.map(({ sub }) => sub)
    const bodies = fc.sample(policyBodies(subs), { seed, numRuns: RECORDS * AGENTS })
    const cases = fc.sample(policyCases(RECORDS), { seed, numRuns: CASES })
    // Whatever is drawn, some requests are allowed and some are not.
    const [first] = cases
    if (first !== undefined)
      cases.push(
        { ...first, policies: [{ actions: ['read', 'write', 'delete'], conditions: [] }] },
        { ...first, policies: [] },
      )
    const shares = await Promise.all(
      Array.from({ length: AGENTS }, async (_none, nth) => {
        const own = bodies.slice(nth * RECORDS, (nth + 1) * RECORDS)
        const agent = await Strand.make(server, service, { name: `tried-${nth}`, bodies: own })
        const told: Told[] = []
        for (const one of cases.filter((_one, at) => at % AGENTS === nth))
          told.push(
            ...(await agent.answers(one, { token: tokens[one.user] ?? '', claims: claims[one.user] })),
          )
        return told
      }),
    )
    const told = shares.flat()
    const said = await page.evaluate(
      (all) =>
        all.map(({ policies, asked, bodies }) => {
          const judge = new tried.Judge(policies, asked)
          return bodies.map((record) => judge.judge(record))
        }),
      told.map(({ policies, asked, bodies }) => ({ policies, asked, bodies })),
    )
    for (const [at, { policies, asked, bodies, allowed }] of told.entries()) {
      const differ = bodies.filter((_body, nth) => said[at]?.[nth]?.allowed !== allowed[nth])
      expect(differ, JSON.stringify({ policies, asked })).toEqual([])
      for (const judgement of said[at] ?? []) expectReasons(judgement, policies, asked)
    }
    const verdicts = told.flatMap(({ allowed }) => allowed)
    expect(verdicts).toContain(true)
    expect(verdicts).toContain(false)
  })
})

/** An allowed record names a rule about the action; any other a reason for each rule about it, or how many are left out. */
function expectReasons({ allowed, reasons, more }: Judgement, policies: Policy[], { action }: Asked): void {
  const about = policies.filter(({ actions }) => actions.includes(action)).length
  expect(reasons.length + more).toBe(allowed ? 1 : about)
  for (const reason of reasons) {
    expect(policies[reason.rule]?.actions).toContain(action)
    expect(reason.kind === 'allows').toBe(allowed)
    if ('condition' in reason) expect(policies[reason.rule]?.conditions[reason.condition]).toBeDefined()
  }
}

function named(users: readonly User[], email: string): User {
  const user = users.find((one) => one.email === email)
  if (user === undefined) throw new Error(`Expected a user ${email}`)
  return user
}

/** Two agents of the same rules: one whose records are read and deleted, and one that is written to. */
class Strand {
  readonly #server: TestServer
  readonly #name: string
  readonly #rows: RecordRow[]
  readonly #hashes: string[]

  private constructor(
    server: TestServer,
    name: string,
    { rows, hashes }: { rows: RecordRow[]; hashes: string[] },
  ) {
    this.#server = server
    this.#name = name
    this.#rows = rows
    this.#hashes = hashes
  }

  static async make(
    server: TestServer,
    service: ServiceClient,
    { name, bodies }: { name: string; bodies: readonly Record<string, unknown>[] },
  ): Promise<Strand> {
    await service.createAgent(name, undefined, 'free')
    await service.createAgent(`${name}-written`, undefined, 'free')
    const written = await service.agent(name).writeBatch([...bodies])
    const { signal } = new AbortController()
    const rows = await readRows(service, name, { fromSeq: 0, toSeq: bodies.length, signal })
    return new Strand(server, name, { rows: rows.reverse(), hashes: written.map(({ record_id: id }) => id) })
  }

  /** What the server says to one user under the rules of a case. */
  async answers(
    { policies, written, deleted }: PolicyCase,
    { token, claims }: { token: string; claims: PolicyClaims | undefined },
  ): Promise<Told[]> {
    if (claims === undefined) throw new Error('Expected the claims of the user')
    await Promise.all([this.#name, `${this.#name}-written`].map((name) => this.#setPolicies(name, policies)))
    const told = (action: Asked['action'], bodies: TriedRecord[], allowed: boolean[]): Told => ({
      policies,
      asked: { action, claims },
      bodies,
      allowed,
    })
    const application = (body: string | undefined): TriedRecord => ({ type: 'record', body })
    const [read, writes] = await Promise.all([this.#read(token), this.#written(token, written)])
    const deletes = await Promise.all(deleted.map((at) => this.#isDeleted(token, { at, read })))
    const texts = written.map((body) => application(canonicalJson(body)))
    const targets = deleted.map((at) => application(this.#rows[at + 1]?.body))
    return [told('read', this.#rows, read), told('write', texts, writes), told('delete', targets, deletes)]
  }

  async #setPolicies(name: string, policies: Policy[]): Promise<void> {
    const { status, text } = await call(this.#server, `PUT /v1/agents/${name}/policies`, {
      body: { policies },
    })
    expect(status, text).toBe(200)
  }

  /** Which records the user finds, also among those of the server. */
  async #read(token: string): Promise<boolean[]> {
    const { status, body, text } = await call(this.#server, `POST /v1/agents/${this.#name}/query`, {
      key: token,
      body: { type: 'time_range', from_ts: 0, types: ['record', 'sys/genesis'], order: 'asc', limit: 1_000 },
    })
    if (status === 403) return this.#rows.map(() => false)
    expect([status, body.next_cursor], text).toEqual([200, null])
    const seen = new Set(body.records.map(({ seq }: { seq: number }) => seq))
    return this.#rows.map(({ seq }) => seen.has(seq))
  }

  /** Which bodies the user may write. */
  async #written(token: string, bodies: readonly object[]): Promise<boolean[]> {
    const { status, body, text } = await call(
      this.#server,
      `POST /v1/agents/${this.#name}-written/records/batch`,
      {
        key: token,
        body: { records: bodies.map((data) => ({ data })), atomic: false },
      },
    )
    if (status === 403) return bodies.map(() => false)
    expect(status, text).toBe(201)
    return body.results.map((result: { error?: { code: string } }) => {
      if (result.error !== undefined) expect(result.error.code).toBe('forbidden')
      return result.error === undefined
    })
  }

  /**
   * Whether the user may delete a record, which is then restored. One that is hidden is not there, as far as the user can
   * tell.
   */
  async #isDeleted(token: string, { at, read }: { at: number; read: boolean[] }): Promise<boolean> {
    const path = `/v1/agents/${this.#name}/records/${this.#hashes[at]}`
    const { status, body } = await call(this.#server, `DELETE ${path}`, { key: token })
    if (status === 200) expect((await call(this.#server, `POST ${path}/restore`)).status).toBe(200)
    else if (status === 404) expect([body.code, read[at + 1]]).toEqual(['record_not_found', false])
    else expect([status, body.code]).toEqual([403, 'forbidden'])
    return status === 200
  }
}
