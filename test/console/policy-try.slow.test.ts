import { decodeJwt } from 'jose'
import type { Page } from 'playwright-core'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { consoleInput } from '../../scripts/console-input.mjs'
import type { Policy, PolicyClaims } from '../../src/auth/row-policy.js'
import { ServiceClient, type User } from '../../src/client/index.js'
import { readRows, type RecordRow } from '../../src/console/parts/records/record-row.js'
import * as buffer from '../../src/console/agents/rules/buffer.js'
import { claimsOf } from '../../src/console/agents/rules/claims.js'
import {
  type AccessRequest,
  Judge,
  type Judgement,
  type TriedRecord,
} from '../../src/console/agents/rules/judge.js'
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
/** The agents whose cases run in parallel. */
const AGENTS = 8
const RECORDS = 30
const seed = runSeed('policy-try')

/** The server's decisions about the records of one request, which Try has to reproduce. */
interface ServerDecision {
  policies: Policy[]
  request: AccessRequest
  bodies: TriedRecord[]
  allowed: boolean[]
}

/** The bundled code of the console in the page of the test. */
declare const tried: { Judge: typeof Judge }

describe('the part of Buffer that the rules use', () => {
  const bytes = fc.uint8Array({ maxLength: 40 })
  const range = fc.tuple(fc.nat({ max: 40 }), fc.nat({ max: 40 }))
  const ranges = fc.tuple(range, range)

  it('reads and compares like Node’s Buffer', () => {
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

describe.skipIf(noBrowser)('the judgements of Try', () => {
  let server: TestServer
  let smtp: SmtpProcess
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
    page = await (await sharedBrowser()).newPage()
    const bundle = await rolldown({
      ...consoleInput,
      input: `${import.meta.dirname}/../../src/console/agents/rules/judge.ts`,
      preserveEntrySignatures: 'strict',
    })
    const { output } = await bundle.generate({ format: 'iife', name: 'tried', minify: true })
    await page.addScriptTag({ content: output[0].code })
  })

  afterAll(async () => {
    await page?.context().close()
    await server?.stop()
    await smtp?.stop()
  })

  /**
   * Issues a token after the metadata is set. The first user signs in by a mailed link, the others by
   * password.
   */
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

  it('use the claims that tokens have', () => {
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

  it(`equal the decisions of the server for ${CASES} generated rules, claims and bodies`, async () => {
    const subs = claims.map(({ sub }) => sub)
    const bodies = fc.sample(policyBodies(subs), { seed, numRuns: RECORDS * AGENTS })
    const cases = fc.sample(policyCases(RECORDS), { seed, numRuns: CASES })
    // Two fixed cases guarantee allowed and refused requests.
    const [first] = cases
    if (first !== undefined)
      cases.push(
        { ...first, policies: [{ actions: ['read', 'write', 'delete'], conditions: [] }] },
        { ...first, policies: [] },
      )
    const shares = await Promise.all(
      Array.from({ length: AGENTS }, async (_none, nth) => {
        const share = bodies.slice(nth * RECORDS, (nth + 1) * RECORDS)
        const agent = await Strand.make(server, service, { name: `tried-${nth}`, bodies: share })
        const own: ServerDecision[] = []
        for (const one of cases.filter((_one, at) => at % AGENTS === nth))
          own.push(
            ...(await agent.decisions(one, { token: tokens[one.user] ?? '', claims: claims[one.user] })),
          )
        return own
      }),
    )
    const decisions = shares.flat()
    const judgements = await page.evaluate(
      (all) =>
        all.map(({ policies, request, bodies }) => {
          const judge = new tried.Judge(policies, request)
          return bodies.map((record) => judge.judge(record))
        }),
      decisions.map(({ policies, request, bodies }) => ({ policies, request, bodies })),
    )
    for (const [at, { policies, request, bodies, allowed }] of decisions.entries()) {
      const differ = bodies.filter((_body, nth) => judgements[at]?.[nth]?.allowed !== allowed[nth])
      expect(differ, JSON.stringify({ policies, request })).toEqual([])
      for (const judgement of judgements[at] ?? []) expectReasons(judgement, policies, request)
    }
    const verdicts = decisions.flatMap(({ allowed }) => allowed)
    expect(verdicts).toContain(true)
    expect(verdicts).toContain(false)
  })
})

/**
 * An allowed record has one reason, a rule for the action; other records have a reason or a count for each
 * such rule.
 */
function expectReasons(
  { allowed, reasons, more }: Judgement,
  policies: Policy[],
  { action }: AccessRequest,
): void {
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

/**
 * Two agents with the same rules: records of the first are read and deleted, and the second is written to.
 */
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

  /** The decisions of the server about a user's requests under the rules of a case. */
  async decisions(
    { policies, written, deleted }: PolicyCase,
    { token, claims }: { token: string; claims: PolicyClaims | undefined },
  ): Promise<ServerDecision[]> {
    if (claims === undefined) throw new Error('Expected the claims of the user')
    await Promise.all([this.#name, `${this.#name}-written`].map((name) => this.#setPolicies(name, policies)))
    const decision = (
      action: AccessRequest['action'],
      bodies: TriedRecord[],
      allowed: boolean[],
    ): ServerDecision => ({
      policies,
      request: { action, claims },
      bodies,
      allowed,
    })
    const application = (body: string | undefined): TriedRecord => ({ type: 'record', body })
    const [read, writes] = await Promise.all([this.#read(token), this.#written(token, written)])
    const deletes = await Promise.all(deleted.map((at) => this.#isDeleted(token, { at, read })))
    const texts = written.map((body) => application(canonicalJson(body)))
    const targets = deleted.map((at) => application(this.#rows[at + 1]?.body))
    return [
      decision('read', this.#rows, read),
      decision('write', texts, writes),
      decision('delete', targets, deletes),
    ]
  }

  async #setPolicies(name: string, policies: Policy[]): Promise<void> {
    const { status, text } = await call(this.#server, `PUT /v1/agents/${name}/policies`, {
      body: { policies },
    })
    expect(status, text).toBe(200)
  }

  /** Which records the user can query, including records of the server. */
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

  /** Which bodies the user can write. */
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
   * Whether the user can delete a record, which is then restored. For a record that the user cannot read, the
   * server answers 404.
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
