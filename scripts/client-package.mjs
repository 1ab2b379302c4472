/**
 * Assembles the compiled client: `packages/client/dist`, one module with its declarations, independent of
 * Node and of other packages, of which it contains what it uses; and `dist/client`, by which `strandfast/client` re-exports it
 * (docs/adr/0040-client-package.md).
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { keptCalls } from './kept-calls.mjs'
import { licensesOf } from './licenses.mjs'
import { putFiles } from './put-files.mjs'
import { plainTypes } from './wire-types.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiled = join(root, 'dist/src')
const entry = 'client/index'

const bundle = await rolldown({
  input: join(compiled, `${entry}.js`),
  cwd: root,
  platform: 'neutral',
  transform: { define: keptCalls },
  onLog(_level, log) {
    throw new Error(log.message)
  },
})
const { output } = await bundle.generate({ format: 'esm' })
const [{ code, imports }, ...others] = output
if (others.length > 0 || imports.length > 0)
  throw new Error(`The client imports ${imports}: it must be one module`)

const files = new Map([['index.js', `/*!\n${licensesOf(output)}*/\n${code}`]])
await addDeclarations(`${entry}.d.ts`)
putFiles(join(root, 'packages/client/dist'), files)

const reExport = "export * from '@strandfast/client'\n"
putFiles(
  join(root, 'dist/client'),
  new Map([
    ['index.js', reExport],
    ['index.d.ts', reExport],
  ]),
)

/** Adds declarations, by their path in `dist/src`, and everything that they import. */
async function addDeclarations(path) {
  const name = `types/${path}`
  if (files.has(name)) return
  const text = readFileSync(join(compiled, path), 'utf8')
  // Also ends circles of imports.
  files.set(name, text)
  const module = () => import(pathToFileURL(join(compiled, path.replace(/\.d\.ts$/, '.js'))))
  const plain = path.startsWith('wire/') ? plainTypes(text, await module()) : text
  files.set(name, plain)
  for (const [, imported] of plain.matchAll(/(?:\bfrom |\bimport\(|\bimport )['"]([^'"]+)['"]/g)) {
    if (!imported.startsWith('.'))
      throw new Error(`${path} imports ${imported}, which the client must not depend on`)
    await addDeclarations(join(dirname(path), imported.replace(/\.js$/, '.d.ts')))
  }
}
