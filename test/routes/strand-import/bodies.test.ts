import { fc } from '../../support/fast-check.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkedCall, newAgent } from '../../support/http/answers.js'
import { exportOf, importedRecords, importTo, linesOf, sharedSeed } from '../../support/shard/imports.js'
import { startServer, type TestServer } from '../../support/server/server.js'

/* A body survives write, export and import byte for byte. */

let source: TestServer
let target: TestServer

beforeAll(async () => {
  source = await startServer({ env: sharedSeed })
  target = await startServer({ env: sharedSeed })
})
afterAll(async () => {
  await source.stop()
  await target.stop()
})

/** The bodies of an agent's records in an export. */
const bodiesOf = (exported: string) =>
  linesOf(exported)
    .slice(2, -1)
    .map((line): string => JSON.parse(line).body)

async function roundTrip(agent: string, bodies: readonly string[]): Promise<string[]> {
  await newAgent(source, agent)
  const body = bodies.map((text) => `${text}\n`).join('')
  const headers = { 'content-type': 'application/x-ndjson' }
  const written = await checkedCall(source, `POST /v1/ingest/${agent}`, { headers, raw: body })
  expect(written.body, written.text).toMatchObject({ accepted: bodies.length, rejected: 0 })
  const exported = await exportOf(source, agent)
  const imported = await importTo(target, exported)
  expect(imported.status, imported.text).toBe(200)
  expect(importedRecords(await exportOf(target, agent))).toEqual(importedRecords(exported))
  return bodiesOf(exported)
}

it('preserves numbers that become integers of more than 53 bits', async () => {
  const texts = ['1e16', '-1e16', '1e20', '1e21', '9007199254740993.0', '1e-400', '5e-324', '-0.0', '1.5e300']
  const bodies = await roundTrip(
    'numbers',
    texts.map((text) => `{"n":${text}}`),
  )
  expect(bodies).toEqual([
    '{"n":10000000000000000}',
    '{"n":-10000000000000000}',
    '{"n":100000000000000000000}',
    '{"n":1e+21}',
    // None of these is a double: the nearest one is stored.
    '{"n":9007199254740992}',
    '{"n":0}',
    '{"n":5e-324}',
    '{"n":0}',
    '{"n":1.5e+300}',
  ])
})

it('preserves any body', async () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value.toExponential())
  const scalar = fc.oneof(
    number,
    fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
    fc.constantFrom('null', 'true', '1', '9007199254740991'),
  )
  const name = fc.string({ unit: 'grapheme', maxLength: 5 }).filter((text) => !text.includes('\0'))
  const object = fc
    .uniqueArray(fc.tuple(name, scalar), { selector: ([key]) => key, maxLength: 5 })
    .map((pairs) => `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`)
  const deep = object.map((text) => `{"a":${'['.repeat(62)}${']'.repeat(62)},"b":${text}}`)
  const bodies = fc.sample(fc.oneof({ weight: 9, arbitrary: object }, deep), { seed: 7, numRuns: 300 })
  const usable = bodies.filter((text) => !text.includes('__proto__'))
  await roundTrip('any', usable)
})

it('refuses numbers in an import that a write could not have stored', async () => {
  const [manifest = '', ...rest] = linesOf(await exportOf(source, 'numbers'))
  for (const [name, other] of [
    ['beyond', '10000000000000001'],
    ['spelt', '10000000000000000.0'],
  ] as const) {
    const lines = rest.map((line) => line.replace('10000000000000000}', `${other}}`))
    const answer = await importTo(target, [manifest, ...lines, ''].join('\n').replaceAll('numbers', name))
    expect(answer.status).toBe(422)
  }
})
