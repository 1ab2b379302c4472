import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, it } from 'vitest'
import { consoleInput } from '../../scripts/console-input.mjs'
import { keptCalls } from '../../scripts/kept-calls.mjs'
import { plantedBugs, plantedHandOvers } from '../support/cluster/rounds/planted-build.js'

/* What `npm run build` has put together (scripts/bundle.mjs). */

const program = 'dist/program'
const files = readdirSync(program, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.js'))
  .map((path) => ({ path, text: readFileSync(join(program, path), 'utf8') }))
const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(
  readFileSync('package.json', 'utf8'),
)

/** What all files name by a pattern's first group, each once. */
function named(pattern: RegExp): string[] {
  return [...new Set(files.flatMap(({ text }) => [...text.matchAll(pattern)].map(([, name = '']) => name)))]
}

it('has a file for each thread that the program starts', () => {
  const threads = named(/workerEntry\("([^"]+)"\)/g)
  expect(threads).toContain('shard-thread')
  expect(threads.filter((name) => !existsSync(join(program, 'workers', `${name}.js`)))).toEqual([])
})

it('has the module that finds the files of threads two folders deep, from where it finds them', () => {
  const finding = files.filter(({ text }) => text.includes('../../workers/')).map(({ path }) => path)
  // From another depth a thread would be found in what was compiled, and not where the program is installed.
  expect(finding).toEqual([expect.stringMatching(/^src[\\/]parts[\\/][^\\/]+$/)])
})

it('loads nothing but what is installed with the package', () => {
  const loaded = named(/(?:^import .* from |^import |\bimport\(|__require\()"([^"./][^"]*)"/gm)
  expect(loaded).toEqual(expect.arrayContaining(['lmdb', 'uWebSockets.js', 'openid-client']))
  const packages = loaded
    .filter((name) => !isBuiltin(name))
    .map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0])
  expect(packages.filter((name) => name === undefined || !(name in dependencies))).toEqual([])
})

it('requires the CommonJS packages with native parts, which Node reads through first where they are imported', () => {
  expect(named(/^import .* from "(sodium-native|lmdb|msgpackr|piscina)"/gm)).toEqual([])
})

it('requires node:http, whose import makes Node load undici', () => {
  expect(named(/^import .* from "(node:http)"/gm)).toEqual([])
  expect(named(/__require\("(node:http)"/g)).toEqual(['node:http'])
})

it('carries the licenses of the packages that were put in', () => {
  const licenses = readFileSync(join(program, 'LICENSES.txt'), 'utf8')
  for (const name of ['typebox', 'jose', 'lru-cache'])
    expect(licenses).toMatch(new RegExp(`^${name} [\\d.]+: `, 'm'))
})

it('has each text that a planted bug changes, once', () => {
  const texts = [...plantedBugs, ...plantedHandOvers].flatMap(({ changes }) => changes.map(([text]) => text))
  const times = (text: string) => files.reduce((sum, file) => sum + file.text.split(text).length - 1, 0)
  expect(texts.filter((text) => times(text) !== 1)).toEqual([])
})

/** Calls that throw for some arguments, as statements whose value is not used. */
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
])('keeps calls that can throw, unused, in %s', async (_name, { transform }, minify) => {
  const input = 'planted'
  const code = throwing.map((call) => `export const f = (x) => { try { ${call} } catch { return 1 } }`)
  const kept = async (one: string) => {
    const planted = {
      name: input,
      resolveId: (id: string) => (id === input ? id : null),
      load: (id: string) => (id === input ? one : null),
    }
    const bundle = await rolldown({ input, transform: transform ?? {}, plugins: [planted] })
    const { output } = await bundle.generate({ minify })
    return output[0].code.includes('catch')
  }
  const all = await Promise.all(code.map(kept))
  expect(throwing.filter((_call, at) => all[at] !== true)).toEqual([])
})
