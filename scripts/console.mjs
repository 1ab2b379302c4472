/**
 * Bundles the pages for people (src/console): the console into `dist/program/console`, with the worker that checks, and
 * the page of the interface into `dist/program/docs`. Each file is compressed with brotli and named by a hash of what it
 * holds, but for the page itself. The server reads the folders when it starts; the names of the files are all that it has
 * to know. Names are relative, so that a proxy can serve the pages below a prefix of its own.
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
/** In the page itself: it is smaller than what a request for it would carry. */
const icon = `data:image/svg+xml,${encodeURIComponent(readFileSync(join(source, 'icon.svg'), 'utf8').trim())}`
/** Colours, text and fields look the same on both pages. */
const shared = ['colours.css', 'base.css']

await makePage('console', {
  html: 'index.html',
  styles: [...shared, 'style.css'],
  scripts: { 'check-worker': 'check-worker.ts', main: 'main.tsx' },
})
await makePage('docs', {
  html: 'api/index.html',
  styles: [...shared, 'api/api.css'],
  scripts: { main: 'api/api.tsx' },
})

/** Writes the files of a page, which names them below its own address. */
async function makePage(page, { html, styles, scripts }) {
  const files = new Map()
  const style = styles.map((name) => readFileSync(join(source, name), 'utf8')).join('')
  const names = {
    '{version}': version,
    '{style}': `${page}/${add(files, 'style.css', style)}`,
    '{icon}': icon,
  }
  for (const [name, entry] of Object.entries(scripts))
    names[`{${name}}`] = `${page}/${await addScript(files, name, entry)}`
  let text = readFileSync(join(source, html), 'utf8')
  for (const [name, value] of Object.entries(names)) text = text.replace(name, value)
  files.set('index.html.br', compressed(text))
  putFiles(join(root, 'dist/program', page), files)
}

/** Bundles a script, and the parts of it that are loaded when they are needed. @returns its file */
async function addScript(files, name, entry) {
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
  return output.find(({ isEntry }) => isEntry).fileName
}

/** Adds a file under a name that changes with its content. @returns that name */
function add(files, name, content) {
  const hash = createHash('sha256').update(content).digest('base64url').replaceAll(/[-_]/g, '').slice(0, 10)
  const [stem, extension] = name.split('.')
  const file = `${stem}-${hash}.${extension}`
  files.set(`${file}.br`, compressed(content))
  return file
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
