import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, type BrotliOptions, type ZlibOptions } from 'node:zlib'
import { assert } from '../base/assert.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import { packageFile } from '../base/version.js'
import type { ServedFile, ServedFiles, ServedPages } from '../front/http/file.js'
import { pageFile } from '../front/routes/page-files.js'
import type { PageName } from '../front/routes/route.js'
import type { Config } from '../settings/config.js'

/** Where a build puts the files of a page, each compressed with brotli and with gzip. */
const builtFolder = (page: PageName): string => fileURLToPath(new URL(`dist/program/${page}/`, packageFile()))

/** Reads the pages into memory; the console only if it is switched on. */
export async function readPages(config: Pick<Config, 'console'>, log: Logger): Promise<ServedPages> {
  const [console, docs] = await Promise.all([
    config.console ? readPage('console', { log }) : undefined,
    readPage('docs', { log }),
  ])
  return { console, docs }
}

/**
 * Reads a page into memory. If the build has no page or a damaged one, the server logs the fault and runs
 * without the page: records matter more than the page that shows them.
 */
export async function readPage(
  page: PageName,
  { log, folder = builtFolder(page) }: { log: Logger; folder?: string },
): Promise<ServedFiles | undefined> {
  try {
    const names = await namesIn(folder)
    if (names.includes(pageFile)) return await readFiles(folder, names)
    log.info(`this build does not contain /${page}: it answers 404`)
  } catch (error) {
    log.error(
      { err: error },
      `could not read the files of /${page}: it answers 404 until the program is built again`,
    )
  }
  return undefined
}

/** The file names without .br and .gz; none if the folder does not exist. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith('.br')).map((name) => name.slice(0, -3))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

async function readFiles(folder: string, names: readonly string[]): Promise<ServedFiles> {
  assert(names.length <= limits.consoleFilesMax, `a page has at most ${limits.consoleFilesMax} files`)
  const read = async (name: string) => {
    const path = join(folder, name)
    const [br, gzip] = await Promise.all([readFile(`${path}.br`), readFile(`${path}.gz`)])
    return [name, await fileOf(name, { br, gzip })] as const
  }
  return new Map(await Promise.all(names.map(read)))
}

const contentTypes = new Map([
  ['js', 'text/javascript; charset=utf-8'],
  ['css', 'text/css; charset=utf-8'],
  ['svg', 'image/svg+xml'],
  ['py', 'text/x-python; charset=utf-8'],
  ['txt', 'text/plain; charset=utf-8'],
])

/** File names that contain a hash of the content, so that browsers can cache the files for a year. */
const partPattern = /^[\w.-]+-[\w-]{6,}\.(js|css|svg|py|txt)$/

async function fileOf(name: string, coded: ServedFile['coded']): Promise<ServedFile> {
  const contentType =
    name === pageFile ? 'text/html; charset=utf-8' : contentTypes.get(partPattern.exec(name)?.[1] ?? '')
  assert(
    contentType !== undefined,
    `a file of a page is named NAME-HASH.js, .css, .svg, .py or .txt, not ${name}`,
  )
  const bounds = { maxOutputLength: limits.consoleFileBytesMax }
  const [plain, same] = await Promise.all([inflated(coded.br, bounds), gunzipped(coded.gzip, bounds)])
  assert(plain.equals(same), `both codings of ${name} hold the same`)
  const tag = hash('sha256', plain, 'base64url').slice(0, 22)
  return { contentType, tag, plain, coded }
}

const inflated = promisify<Uint8Array, BrotliOptions, Buffer>(brotliDecompress)
const gunzipped = promisify<Uint8Array, ZlibOptions, Buffer>(gunzip)
