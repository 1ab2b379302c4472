import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAuthServer } from '../support/server/auth-server.js'
import type { TestServer } from '../support/server/server.js'

/*
 * Types generated from /openapi.json by openapi-typescript with its default settings, for programs without
 * our client: the calls of the examples (packages/openapi-types/calls.ts) compile with them, and return what
 * the types say.
 */

const home = resolve('packages/openapi-types')
const made = join(home, 'dist/openapi.d.ts')
const planted = join(home, 'dist/planted.ts')
const compilers = {
  'TypeScript of today': resolve('node_modules/typescript/bin/tsc'),
  'TypeScript 5': join(home, 'node_modules/typescript/bin/tsc'),
}

/** Runs a Node program. @returns its output, also if it fails */
async function outputOf(script: string, ...args: string[]): Promise<string> {
  try {
    return (await promisify(execFile)(process.execPath, [script, ...args], { cwd: home })).stdout
  } catch (error) {
    if (error instanceof Error && 'stdout' in error) return String(error.stdout)
    throw error
  }
}

describe('types generated from /openapi.json', () => {
  let server: TestServer
  // The file imports types that this test generates, so the compiler of the tests cannot check it.
  let calls: Record<string, (target: TestServer) => Promise<unknown>>

  beforeAll(async () => {
    server = await startAuthServer()
    mkdirSync(join(home, 'dist'), { recursive: true })
    rmSync(made, { force: true })
    await outputOf('node_modules/openapi-typescript/bin/cli.js', `${server.url}/openapi.json`, '-o', made)
    calls = await import(join(home, 'calls.ts'))
  })

  afterAll(async () => {
    rmSync(planted, { force: true })
    await server?.stop()
  })

  it('contain every operation', () => {
    const types = readFileSync(made, 'utf8')
    const document = JSON.parse(readFileSync('docs/openapi.json', 'utf8'))
    const operations = Object.values<Record<string, { operationId: string }>>(document.paths).flatMap(
      (item) => Object.values(item).map(({ operationId }) => operationId),
    )
    expect(operations.length).toBeGreaterThan(80)
    expect(operations.filter((id) => !types.includes(`: operations["${id}"];`))).toEqual([])
  })

  it.each(Object.entries(compilers))('let the calls of the examples compile with %s', async (_, compiler) => {
    expect(await outputOf(compiler, '-p', '.')).toBe('')
  })

  it.each(Object.entries(compilers))('refuse a wrong call with %s', async (_, compiler) => {
    writeFileSync(
      planted,
      `import createClient from 'openapi-fetch'
import type { paths } from './openapi.js'
const { POST } = createClient<paths>()
export const path = { params: { path: { organism_id: 'acme' } } }
export const misspelt = POST('/v1/agents', { body: { nam: 'sensors', zone: 'free' } })
export const lacking = POST('/v1/organisms/{organism_id}/auth/login', { ...path, body: { email: 'a@b.c' } })
export const placeless = POST('/v1/organisms/{organism_id}/auth/init')
`,
    )
    const options = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022']
    const known = compiler === compilers['TypeScript 5'] ? options.slice(1) : options
    const faults = await outputOf(
      compiler,
      ...known,
      '--module',
      'esnext',
      '--moduleResolution',
      'bundler',
      planted,
    )
    expect([...faults.matchAll(/^\S*planted\.ts\((\d+),/gm)].map(([, line]) => line)).toEqual(['5', '6', '7'])
  })

  it('are correct: the calls return what they say', async () => {
    const call = async (name: string) => calls[name]?.(server)
    expect(await call('ingestRows')).toBe(2)
    expect(await call('writeAndRead')).toMatchObject([
      { seq: 1, type: 'record', payload: { room: 'hall', lit: true } },
      { seq: 2, payload: { room: 'attic' } },
    ])
    expect(await call('followAndExport')).toEqual([
      expect.stringContaining('"room":"hall"'),
      expect.stringContaining('"agent":"rooms"'),
    ])
    expect(await call('connect')).toEqual([1, 'forbidden'])
    expect(await call('signIn')).toEqual(['ada@example.org', 2, 1])
  })
})
