/**
 * Bundles the compiled program into few files in `dist/program`: one entry per thread, and files that several
 * threads share or that are loaded when needed (docs/adr/0026-bundled-program.md). Node takes about half a
 * millisecond per loaded file in each thread.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { keptCalls } from './kept-calls.mjs'
import { licensesOf } from './licenses.mjs'
import { putFiles } from './put-files.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiled = join(root, 'dist')
const program = join(compiled, 'program')

/**
 * CommonJS packages that are loaded with `require` from where they are installed: for an `import`, Node
 * searches the whole file for its exports, which takes longer than running it.
 */
const required = [
  // Packages with native parts.
  '@node-rs/argon2',
  'fs-native-extensions',
  'lmdb',
  'msgpackr',
  'sodium-native',
  // Starts threads with a file beside it.
  'piscina',
  // An `import` also reads the exports WebSocket, CloseEvent and MessageEvent, for which Node loads undici.
  'node:http',
]

/** Packages that are imported from where they are installed. */
const imported = [
  'uWebSockets.js',
  // Loaded only by a command, or if a feature is on.
  '@simplewebauthn/server',
  'openid-client',
  'pg',
  'pg-copy-streams',
]

/** Stands for the digest until the output is known. */
const digestPlace = 'digest-of-the-build'
const DIGEST_DIGITS = 12

/** Matches the entry name of a thread that a module starts. */
const workerNamed = /workerEntry\('([a-z-]+)'\)/g

const input = { strandfast: join(compiled, 'src/cli/main.js') }
for (const worker of workersStarted()) input[`workers/${worker}`] = join(compiled, `workers/${worker}.js`)
const bundle = await rolldown({
  input,
  cwd: root,
  platform: 'node',
  external: (id) =>
    (id.startsWith('node:') && !required.includes(id)) ||
    imported.some((name) => id === name || id.startsWith(`${name}/`)),
  plugins: [requiring()],
  transform: { define: { ...keptCalls, BUILD_DIGEST: JSON.stringify(digestPlace) } },
  onLog(_level, log) {
    throw new Error(log.message)
  },
})
// Two folders deep, as src/base/worker-entry.ts requires. Comments are an eighth of the package.
const { output } = await bundle.generate({
  format: 'esm',
  comments: false,
  chunkFileNames: 'src/parts/[name]-[hash].js',
})
const modules = modulesOf()
const digest = digestOfModules()
const files = new Map(output.map(({ fileName, code }) => [fileName, code.replaceAll(digestPlace, digest)]))
const passwords = JSON.parse(readFileSync(join(root, 'src/auth/common-passwords.json'), 'utf8'))
files.set('LICENSES.txt', `${licensesOf(output)}\n${passwords.source}: MIT\n\n${passwords.license}\n`)
putFiles(program, files)
writeFileSync(join(compiled, 'program-modules.json'), JSON.stringify(modules))

/**
 * @returns {Record<string, {file: string, code: string}>} modules of this repository: their file and
 * remaining code
 */
function modulesOf() {
  const parts = output.flatMap(({ fileName, modules = {} }) =>
    Object.entries(modules).map(([id, { code }]) => [relative(compiled, id), { file: fileName, code }]),
  )
  return Object.fromEntries(parts.filter(([path]) => /^(?:src|workers)/.test(path)))
}

/**
 * The digest by which nodes of a cluster recognize their own build: of the compiled modules that the program
 * has, and of the versions of its packages. The files of the bundle differ with the folder of the build.
 */
function digestOfModules() {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const digest = createHash('sha256').update(JSON.stringify(dependencies))
  for (const path of Object.keys(modules).sort())
    digest.update(JSON.stringify([path.replaceAll('\\', '/'), readFileSync(join(compiled, path), 'utf8')]))
  return digest.digest('hex').slice(0, DIGEST_DIGITS)
}

/** Replaces each package of `required` by a module that requires it. */
function requiring() {
  const prefix = '\0required:'
  return {
    name: 'requiring',
    resolveId(id, importer) {
      if (!required.includes(id)) return null
      return importer?.startsWith(prefix) ? { id, external: true } : prefix + id
    },
    load: (id) => (id.startsWith(prefix) ? `module.exports = require('${id.slice(prefix.length)}')` : null),
  }
}

/** @returns {Set<string>} the threads that any module starts */
function workersStarted() {
  const names = new Set()
  for (const path of readdirSync(join(compiled, 'src'), { recursive: true })) {
    if (!path.endsWith('.js')) continue
    for (const [, name] of readFileSync(join(compiled, 'src', path), 'utf8').matchAll(workerNamed))
      names.add(name)
  }
  return names
}
