/**
 * Bundles the console (src/console) into `dist/program/console`: the page, its script, its style, its icon and the worker
 * that checks, each compressed with brotli and named by a hash of what it holds, but for the page itself. The server reads
 * the folder when it starts; the names of the files are all that it has to know.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { rolldown } from 'rolldown'
import { consoleInput } from './console-input.mjs'
import { putFiles } from './put-files.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'src/console')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const files = new Map()
const names = {
  '{version}': version,
  '{check-worker}': await addScript('check-worker', 'check-worker.ts'),
  '{main}': await addScript('main', 'main.tsx'),
  '{style}': add('style', 'css', readFileSync(join(source, 'style.css'))),
  '{icon}': add('icon', 'svg', readFileSync(join(source, 'icon.svg'))),
}
let page = readFileSync(join(source, 'index.html'), 'utf8')
for (const [name, value] of Object.entries(names)) page = page.replace(name, value)
files.set('index.html.br', compressed(page))
putFiles(join(root, 'dist/program/console'), files)

/** Bundles a script, and the parts of it that are loaded when they are needed. @returns how the page names it */
async function addScript(name, entry) {
  const bundle = await rolldown({ input: { [name]: join(source, entry) }, ...consoleInput })
  const { output } = await bundle.generate({
    format: 'esm',
    minify: true,
    entryFileNames: '[name]-[hash].js',
    chunkFileNames: '[name]-[hash].js',
    hashCharacters: 'base36',
    // What screens share stays in the first script, so that the page is there after one request and not two in a row.
    codeSplitting: { groups: [{ name, tags: ['$initial'] }] },
  })
  for (const { fileName, code, modules } of output)
    files.set(`${fileName}.br`, compressed(licenses(modules) + code))
  return `console/${output.find(({ isEntry }) => isEntry).fileName}`
}

/** Adds a file. @returns how the page names it: relatively, so that a proxy can serve it below a prefix of its own */
function add(name, extension, content) {
  const hash = createHash('sha256').update(content).digest('base64url').replaceAll(/[-_]/g, '').slice(0, 10)
  const file = `${name}-${hash}.${extension}`
  files.set(`${file}.br`, compressed(content))
  return `console/${file}`
}

function compressed(content) {
  return brotliCompressSync(content, {
    params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY },
  })
}

/** The licenses of the packages in a script, as a comment. */
function licenses(modules) {
  const folders = new Set()
  for (const path of Object.keys(modules)) {
    const [folder] = /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(path.replaceAll('\\', '/')) ?? []
    if (folder !== undefined) folders.add(folder)
  }
  const texts = [...folders].sort().map((folder) => {
    const { name, version: of, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
    const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim()
    return `${name} ${of}: ${license}\n${text.replaceAll('*/', '* /')}\n`
  })
  return texts.length === 0 ? '' : `/*!\n${texts.join('\n')}*/\n`
}
