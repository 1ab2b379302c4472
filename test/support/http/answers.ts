import { bearerOrBasic } from '../../../src/front/http/answer-head.js'
import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { expect } from 'vitest'
import { errorCatalogue } from '../../../src/base/errors.js'
import { refusalsOf } from '../../../src/front/http/openapi/problems.js'
import { type Route, allRoutes } from '../../../src/front/routes/routes.js'
import type { Scope } from '../../../src/wire/api-keys.js'
import { Problem } from '../../../src/wire/problem.js'
import { call, type TestAnswer, type TestCall, type TestServer } from '../server/server.js'
import { whileLinked } from '../server/through-standby.js'

/*
 * Every answer in tests is checked against the OpenAPI document: its status, its media type, and each member
 * of its body.
 */

const routes = allRoutes('default')
/**
 * The statuses of successful answers, by the path of the test file and the route: files share this module.
 */
const successes = new Map<string, Set<number>>()
const validators = new Map<TSchema, Validator>()
const problem = Compile(Problem)

/** Calls the server and checks the answer against the documented schema of its route and status. */
export async function checkedCall(
  server: TestServer,
  route: string,
  options: TestCall = {},
): Promise<TestAnswer> {
  const answer = await call(server, route, options)
  checkAnswer(route, answer)
  return answer
}

/**
 * Sends a write until it is carried out, with an Idempotency-Key, and expects success. Use it for writes whose
 * effect a test waits for: if one was refused, the test would wait in vain.
 */
export async function written(server: TestServer, route: string, body?: object): Promise<TestAnswer> {
  const headers = { 'idempotency-key': `written-${(writes += 1)}` }
  const options = body === undefined ? { headers } : { headers, body }
  const answer = await whileLinked(() => checkedCall(server, route, options))
  expect(answer.status, `${route}: ${answer.text}`).toBeLessThan(300)
  return answer
}
let writes = 0

/** Checks any answer against the documented schema of its route and status. */
export function checkAnswer(route: string, answer: TestAnswer): void {
  const { headers } = answer
  expect(headers.get('x-content-type-options'), route).toBe('nosniff')
  const isCacheable =
    /^GET \/(?:docs|console|openapi\.json|\?|$)|\/jwks(?:\.json)?(?:\?|$)/.test(route) && answer.status < 400
  if (!isCacheable) expect(headers.get('cache-control'), route).toBe('no-store')
  else expect(headers.get('vary'), route).toMatch(/\bOrigin$/)
  if (answer.status < 400) checkSuccess(route, answer)
  else checkProblem(route, answer)
}

/** Records a success of a call without `checkedCall`, such as an open stream. */
export function recordSuccess(route: string, answer: Pick<TestAnswer, 'status' | 'headers'>): void {
  const found = routeOf(route)
  const documented = found.docs.answers[answer.status]
  expect(documented, `${route} documents the status ${answer.status}`).toBeDefined()
  if (documented !== undefined && 'mediaType' in documented) {
    expect(answer.headers.get('content-type')?.split(';')[0]).toBe(documented.mediaType)
  }
  const key = ofThisFile(found)
  successes.set(key, (successes.get(key) ?? new Set()).add(answer.status))
}

/** The documented successes of routes that no call of this test file has received. */
export function untestedSuccesses(of: readonly Pick<Route, 'method' | 'path'>[]): string[] {
  const requested = new Set(of.map(keyOf))
  return routes
    .filter((route) => requested.has(keyOf(route)))
    .flatMap((route) =>
      Object.keys(route.docs.answers)
        .filter((status) => successes.get(ofThisFile(route))?.has(Number(status)) !== true)
        .map((status) => `${keyOf(route)} ${status}`),
    )
}

function ofThisFile(route: Route): string {
  return `${expect.getState().testPath} ${keyOf(route)}`
}

/** Creates a scoped key with the root key. */
export async function scopedKey(
  server: TestServer,
  scopes: readonly Scope[],
  agents: readonly string[] = [],
): Promise<{ key: string; key_id: string }> {
  return createKeyAs(server, server.rootKey, { scopes, agents })
}

/** Creates a scoped key with another key than the root key. */
export async function createKeyAs(
  server: TestServer,
  by: string,
  { scopes, agents = [] }: { scopes: readonly Scope[]; agents?: readonly string[] },
): Promise<{ key: string; key_id: string }> {
  const { status, body } = await checkedCall(server, 'POST /v1/admin/api-keys', {
    key: by,
    body: { name: 'test', scopes, agents },
  })
  const admins = adminKeys.get(server) ?? []
  if (status === 202) {
    // Once two admin keys exist, one of them has to approve a key that can decide on proposals.
    const approve = `POST /v1/proposals/${body.proposal_id}/approve`
    expect((await checkedCall(server, approve, { key: admins[0] ?? null })).body.state).toBe('applied')
  } else expect(status).toBe(201)
  if (scopes.includes('admin:*') && agents.length === 0) adminKeys.set(server, [...admins, body.key])
  return body
}

/** Admin keys that tests have created, by server. */
const adminKeys = new WeakMap<TestServer, string[]>()

/** Creates an agent, by default of zone `free`, and returns its name. */
export async function newAgent(server: TestServer, name: string, zone = 'free'): Promise<string> {
  expect((await checkedCall(server, 'POST /v1/agents', { body: { name, zone } })).status).toBe(201)
  return name
}

/** The chain head of an agent; undefined if the agent does not exist. */
export async function headOf(
  server: TestServer,
  agent: string,
): Promise<{ chain_head: string; seq: number; record_count: number } | undefined> {
  const { status, body } = await checkedCall(server, `GET /v1/agents/${agent}/head`)
  return status === 404 ? undefined : body
}

/** Runs `action`, and expects that the strand of `agent` does not change. */
export async function expectUnchanged<T>(
  server: TestServer,
  agent: string,
  action: () => Promise<T>,
): Promise<T> {
  const before = await headOf(server, agent)
  const result = await action()
  expect(await headOf(server, agent)).toEqual(before)
  return result
}

function checkSuccess(route: string, answer: TestAnswer): void {
  recordSuccess(route, answer)
  expect(answer.headers.get('x-request-id')).toMatch(/^[\x21-\x7e]{1,128}$/)
  const schema = routeOf(route).docs.answers[answer.status]
  if (schema === undefined || 'mediaType' in schema) return
  expect(answer.headers.get('content-type')).toBe('application/json')
  const faults = faultsOf(validatorOf(schema), answer.body)
  expect(faults, `${route}: ${answer.text.slice(0, 500)}`).toEqual([])
}

function checkProblem(route: string, { status, headers, body, text }: TestAnswer): void {
  const found = findRoute(route)
  const documented = found === undefined ? undefined : refusalsOf(found)
  if (documented !== undefined) {
    expect(documented, `${route}: ${text}`).toContainEqual({ code: body.code, status })
  }
  expect(headers.get('content-type'), text).toBe('application/problem+json')
  // A refused ingest contains its summary, whose `errors` refer to lines, not members.
  if (body.code !== 'ingest_rejected') expect(faultsOf(problem, body), text).toEqual([])
  expect(body.status).toBe(status)
  expect(body.message).toBe(body.detail)
  expect(body.request_id).toBe(headers.get('x-request-id'))
  expect(errorCatalogue).toHaveProperty(body.code)
  const catalogued = Object.entries(errorCatalogue).find(([code]) => code === body.code)?.[1]
  expect(catalogued?.title).toBe(body.title)
  // The status that a route documents can differ from the catalogue; others use the catalogue.
  if (documented === undefined) expect(catalogued?.status).toBe(status)
  // `fetch` sends Sec-Fetch-Mode, as browsers do, which are never offered Basic; raw calls do not.
  const offered = found?.kind === 'ingest' ? ['Bearer', bearerOrBasic.join(', ')] : ['Bearer']
  if (status === 401) expect(offered).toContain(headers.get('www-authenticate'))
}

function faultsOf(validator: Pick<Validator, 'Check' | 'Errors'>, value: unknown): unknown[] {
  return validator.Check(value) ? [] : [...validator.Errors(value)]
}

function validatorOf(schema: TSchema): Validator {
  const known = validators.get(schema)
  if (known !== undefined) return known
  const validator = Compile(closed(schema) as TSchema)
  validators.set(schema, validator)
  return validator
}

/** The schema with every object closed, so that an undocumented member is an error. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]))
  return 'properties' in copy && !('additionalProperties' in copy)
    ? { ...copy, additionalProperties: false }
    : copy
}

function routeOf(route: string): Route {
  const found = findRoute(route)
  if (found === undefined) throw new Error(`No route for ${route}`)
  return found
}

/** Undefined if no route matches: 404 and 405. */
function findRoute(route: string): Route | undefined {
  const [method = '', target = ''] = route.split(' ')
  const path = target.split('?')[0] ?? ''
  return routes.find(
    (candidate) =>
      methodOf(candidate) === method &&
      new RegExp(`^${candidate.path.replaceAll('.', '\\.').replaceAll(/:[a-z_]+/g, '[^/]+')}$`).test(path),
  )
}

function methodOf({ method }: Pick<Route, 'method'>): string {
  return method === 'del' ? 'DELETE' : method.toUpperCase()
}

function keyOf(route: Pick<Route, 'method' | 'path'>): string {
  return `${methodOf(route)} ${route.path}`
}
