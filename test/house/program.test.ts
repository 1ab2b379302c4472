import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, it } from 'vitest'
import { consoleInput } from '../../scripts/console-input.mjs'
import { keptCalls } from '../../scripts/kept-calls.mjs'
import { plantedBugs, plantedTransfers } from '../support/cluster/rounds/planted-build.js'

/* The bundle of `npm run build` (scripts/bundle.mjs). */

const program = 'dist/program'
const files = readdirSync(program, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.js'))
  .map((path) => ({ path, text: readFileSync(join(program, path), 'utf8') }))
const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(
  readFileSync('package.json', 'utf8'),
)

/** The distinct matches of the pattern's first group in all files. */
function named(pattern: RegExp): string[] {
  return [...new Set(files.flatMap(({ text }) => [...text.matchAll(pattern)].map(([, name = '']) => name)))]
}

it('contains a file for each thread', () => {
  const threads = named(/workerEntry\("([^"]+)"\)/g)
  expect(threads).toContain('shard-thread')
  expect(threads.filter((name) => !existsSync(join(program, 'workers', `${name}.js`)))).toEqual([])
})

it('contains the digest of its build, by which nodes recognize each other', () => {
  expect(named(/`\$\{version\}\+([0-9a-f]{12})`/g)).toHaveLength(1)
})

it('contains the module that locates the thread files two folders deep', () => {
  const finding = files.filter(({ text }) => text.includes('../../workers/')).map(({ path }) => path)
  // From another depth, threads would start from the compiled sources instead of the installed program.
  expect(finding).toEqual([expect.stringMatching(/^src[\\/]parts[\\/][^\\/]+$/)])
})

it('loads only Node modules and declared dependencies', () => {
  const loaded = named(/(?:^import .* from |^import |\bimport\(|__require\()"([^"./][^"]*)"/gm)
  expect(loaded).toEqual(expect.arrayContaining(['lmdb', 'uWebSockets.js', 'openid-client']))
  const packages = loaded
    .filter((name) => !isBuiltin(name))
    .map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0])
  expect(packages.filter((name) => name === undefined || !(name in dependencies))).toEqual([])
})

it('loads native CommonJS packages with require, because Node reads them twice when imported', () => {
  expect(named(/^import .* from "(sodium-native|lmdb|msgpackr|piscina)"/gm)).toEqual([])
})

it('loads node:http with require, because its import makes Node load undici', () => {
  expect(named(/^import .* from "(node:http)"/gm)).toEqual([])
  expect(named(/__require\("(node:http)"/g)).toEqual(['node:http'])
})

it('contains the licenses of the bundled packages', () => {
  const licenses = readFileSync(join(program, 'LICENSES.txt'), 'utf8')
  for (const name of ['typebox', 'jose', 'lru-cache'])
    expect(licenses).toMatch(new RegExp(`^${name} [\\d.]+: `, 'm'))
})

it('contains each text that a planted bug changes, once', () => {
  const texts = [...plantedBugs, ...plantedTransfers].flatMap(({ changes }) => changes.map(([text]) => text))
  const times = (text: string) => files.reduce((sum, file) => sum + file.text.split(text).length - 1, 0)
  expect(texts.filter((text) => times(text) !== 1)).toEqual([])
})

/** Calls that throw for some arguments, as unused statements. */
const throwing = [
  ...Object.keys(keptCalls).map((name) => `${name}(x)`),
  'JSON.parse(x)',
  'new URL(x)',
  'BigInt(x)',
  'new RegExp(x)',
  'new TextDecoder("utf-8", { fatal: true }).decode(x)',
  'atob(x)',
  'structuredClone(x)',
  'new Date(x).toISOString()',
  'x.y.z',
  '"".normalize(x)',
  'Object.fromEntries(x)',
]

it.each([
  ['the program and the client', { transform: { define: keptCalls } }, false],
  ['the console', consoleInput, true],
])('keeps unused calls that can throw in %s', async (_name, { transform }, minify) => {
  const input = 'planted'
  const code = throwing.map((call) => `export const f = (x) => { try { ${call} } catch { return 1 } }`)
  const keepsCall = async (one: string) => {
    const planted = {
      name: input,
      resolveId: (id: string) => (id === input ? id : null),
      load: (id: string) => (id === input ? one : null),
    }
    const bundle = await rolldown({ input, transform: transform ?? {}, plugins: [planted] })
    const { output } = await bundle.generate({ minify })
    return output[0].code.includes('catch')
  }
  const all = await Promise.all(code.map(keepsCall))
  expect(throwing.filter((_call, at) => all[at] !== true)).toEqual([])
})

it.each(['package.json', 'Dockerfile', 'deploy/systemd/strandfast.service', 'dist/program/strandfast.js'])(
  'is started by %s with as many helper threads as there are processors for',
  (path) => {
    const starts = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => /^#!|\bnode\b.*strandfast\.js.*\bserve\b/.test(line))
    expect(starts.length).toBeGreaterThan(0)
    for (const line of starts) expect(line.replaceAll('--v8-pool-size=0', '')).not.toBe(line)
  },
)
