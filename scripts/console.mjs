/**
 * Bundles the web pages (src/console): the console with its check worker into `dist/program/console`, and the
 * API page into `dist/program/docs`. Each file is compressed with brotli and gzip and named by a hash of its
 * content, except the page itself. The server reads the folders at its start and only needs the file names.
 * Names are relative, so that a proxy can serve the pages below a prefix.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { consoleInput } from './console-input.mjs'
import { licensesOf } from './licenses.mjs'
import { putFiles } from './put-files.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'src/console')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
/** Inlined, because it is smaller than a request for it. */
const icon = `data:image/svg+xml,${encodeURIComponent(readFileSync(join(source, 'icon.svg'), 'utf8').trim())}`
/** Styles of both pages. */
const shared = ['base.css']
/** Shared styles come before those of a page. */
const consoleStyles = [...stylesBelow('parts'), ...stylesBelow('shell'), ...stylesBelow('').filter(isOfPage)]

const worker = 'check-worker.ts'
const administration = ['audit', 'keys', 'users'].map((folder) => join(source, folder))
const newestRecords = ['home', 'live'].map((folder) => join(source, folder))
await writePage('console', {
  html: 'index.html',
  styles: [...shared, ...consoleStyles],
  scripts: { main: 'main.tsx', 'check-worker': worker },
  // The modules of the worker are in the page too, which checks single records itself. Both load one file.
  parts: { checks: (await modulesOf(worker)).filter((path) => !path.endsWith(worker)) },
  downloads: { verifier: join(root, 'examples/verify.py') },
})
await writePage('docs', {
  html: 'api/index.html',
  styles: [...shared, ...stylesBelow('api')],
  scripts: { main: 'api/api.tsx' },
  parts: {},
  downloads: {},
})

/** The style sheets of a folder of the console, its direct files first. */
function stylesBelow(folder) {
  const names = readdirSync(join(source, folder), { recursive: true }).filter((name) => name.endsWith('.css'))
  return names.map((name) => join(folder, name).replaceAll('\\', '/')).sort(byDepth)
}

function byDepth(one, other) {
  const depth = (path) => path.split('/').length
  return depth(one) - depth(other) || (one < other ? -1 : 1)
}

function isOfPage(path) {
  return path.includes('/') && !/^(parts|shell|api)\//.test(path)
}

/** Writes the files of a page, to which the page refers by relative paths. */
async function writePage(page, { html, styles, scripts, parts, downloads }) {
  const files = new Map()
  const style = minified(styles.map((name) => readFileSync(join(source, name), 'utf8')).join(''))
  const scriptFiles = await addScripts(files, { scripts, parts })
  const names = { version, icon, style: `${page}/${add(files, 'style.css', style)}` }
  for (const [name, file] of scriptFiles) names[name] = `${page}/${file}`
  for (const [name, path] of Object.entries(downloads))
    names[name] = `${page}/${add(files, basename(path), readFileSync(path, 'utf8'))}`
  let text = readFileSync(join(source, html), 'utf8')
  for (const [name, value] of Object.entries(names)) text = text.replace(`{${name}}`, value)
  addCompressed(files, 'index.html', text)
  putFiles(join(root, 'dist/program', page), files)
}

/**
 * Bundles scripts, and their parts that are loaded when needed.
 * @param {{scripts: Record<string, string>, parts: Record<string, string[]>}} what entries and named parts,
 * by their modules
 * @returns the files of both, by name
 */
async function addScripts(files, { scripts, parts }) {
  const input = Object.fromEntries(
    Object.entries(scripts).map(([name, entry]) => [name, join(source, entry)]),
  )
  const bundle = await rolldown({ input, ...consoleInput })
  const named = Object.entries(parts).map(([name, paths]) => ({
    name,
    test: (id) => paths.includes(id),
    priority: 2,
  }))
  const { output } = await bundle.generate({
    format: 'esm',
    minify: true,
    entryFileNames: '[name]-[hash].js',
    chunkFileNames: '[name]-[hash].js',
    hashCharacters: 'base36',
    // Code of the first screens is in the first script, so that the page appears after few parallel requests.
    // Code that other screens share is one script too, because small ones compress badly.
    codeSplitting: {
      groups: [
        ...named,
        { name: 'main', tags: ['$initial'], test: (id) => !id.endsWith(worker), priority: 1 },
        {
          name: 'shared',
          minShareCount: 2,
          test: (id) => id.startsWith(source) && !id.endsWith(worker),
          priority: 1,
        },
        // These screens are used together.
        { name: 'administration', test: (id) => administration.some((folder) => id.startsWith(folder)) },
        // Both screens show records as they arrive. Separately, their small scripts would compress badly.
        { name: 'home', test: (id) => newestRecords.some((folder) => id.startsWith(folder)) },
      ],
    },
  })
  // The first script loads all others, so it names the file of the licenses, which no page loads.
  const notice = `/*! ${add(files, 'licenses.txt', licensesOf(output))} */\n`
  for (const { name, fileName, code } of output)
    addCompressed(files, fileName, name === 'main' ? notice + code : code)
  return new Map(output.map(({ name, fileName }) => [name, fileName]))
}

/** The modules of a script. */
async function modulesOf(entry) {
  const bundle = await rolldown({ input: join(source, entry), ...consoleInput })
  const { output } = await bundle.generate({ format: 'esm' })
  return output.flatMap(({ modules }) => Object.keys(modules))
}

/** Removes comments and optional white space from styles, which contain no strings with either. */
function minified(style) {
  return style
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\s*\n\s*/g, '')
    .replaceAll(/([:,;{]) +| +(?=\{)/g, '$1')
}

/** Adds a file under a name with the hash of its content. @returns that name */
function add(files, name, content) {
  const hash = createHash('sha256').update(content).digest('base64url').replaceAll(/[-_]/g, '').slice(0, 10)
  const [stem, extension] = name.split('.')
  const file = `${stem}-${hash}.${extension}`
  addCompressed(files, file, content)
  return file
}

function addCompressed(files, name, content) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
  files.set(`${name}.br`, brotliCompressSync(content, { params }))
  files.set(`${name}.gz`, gzipSync(content, { level: 9 }))
}
