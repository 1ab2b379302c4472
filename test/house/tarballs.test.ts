import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

/* The published packages, as npm lists them for the build. */

interface Tarball {
  /** The size of the tarball, bytes. */
  size: number
  files: { path: string; size: number }[]
}

function packed(folder: string): Tarball {
  const list = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return JSON.parse(list)[0]
}

/** Every path in a member of package.json, at any depth. */
function pathsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value.replace(/^\.\//, '')]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(pathsIn) : []
}

const digestOf = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')

/** The path of the client package in the server package. */
const bundled = 'node_modules/@strandfast/client/'

const packages = [
  // Code shared by the main thread and front threads is in separate chunks.
  { folder: '.', name: 'strandfast', bytesMax: 1_585_000, filesMax: 310 },
  { folder: 'packages/client', name: '@strandfast/client', bytesMax: 100_000, filesMax: 60 },
].map((one) => {
  const { size, files } = packed(one.folder)
  const isBundled = ({ path }: Tarball['files'][number]) => path.startsWith(bundled)
  return { ...one, size, files: files.filter((file) => !isBundled(file)), inside: files.filter(isBundled) }
})

describe.each(packages)('the package $name', ({ folder, files, size, bytesMax, filesMax }) => {
  const paths = files.map(({ path }) => path)
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

  it('contains its exports and its program', () => {
    const named = [...pathsIn(manifest.exports), ...pathsIn(manifest.bin)]
    expect(named.length).toBeGreaterThan(2)
    expect(named.filter((path) => !paths.includes(path))).toEqual([])
  })

  it('contains its license, README and repository', () => {
    expect(paths).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']))
    const repository = 'https://github.com/strandfast/strandfast'
    expect(manifest).toMatchObject({
      license: 'Apache-2.0',
      repository: { type: 'git', url: `git+${repository}.git` },
      homepage: expect.stringContaining(`${repository}`),
      bugs: { url: `${repository}/issues` },
    })
    expect(manifest.keywords.length).toBeGreaterThan(4)
  })

  it('contains no sources, no tests and no other files', () => {
    const kinds =
      /^(dist\/(client|program|types)\/.*(\.d\.ts|\.js|LICENSES\.txt|(console|docs)\/[\w.-]+\.(br|gz))|dist\/index\.js|[^/]+|docs\/[^/]+\.md)$/
    expect(
      paths.filter((path) => !kinds.test(path) || /\.tsbuildinfo$|\.test\.|(?<!\.d)\.ts$/.test(path)),
    ).toEqual([])
  })

  it('contains no file twice', () => {
    const known = new Map<string, string>()
    // The module and the declarations that re-export the client have the same text.
    const duplicates = paths.flatMap((path) => {
      const digest = `${digestOf(join(folder, path))} ${path.replace(/^.*?(\.d\.ts|\.\w+)?$/, '$1')}`
      const before = known.get(digest)
      known.set(digest, path)
      return before === undefined ? [] : [`${before} and ${path}`]
    })
    expect(known.size).toBeGreaterThan(20)
    expect(duplicates).toEqual([])
  })

  it('stays below its size limits', () => {
    expect(size).toBeLessThan(bytesMax)
    expect(paths.length).toBeLessThan(filesMax)
  })
})

it('bundles the whole client package once in the server package', () => {
  const [server, client] = packages
  const bundledFiles = server?.inside.map(({ path }) => path.slice(bundled.length))
  expect(bundledFiles?.toSorted()).toEqual(client?.files.map(({ path }) => path).toSorted())
  expect(bundledFiles).toContain('dist/index.js')
  const digests = new Set(server?.files.map(({ path }) => digestOf(path)))
  const duplicates = client?.files.filter(({ path }) => digests.has(digestOf(join('packages/client', path))))
  expect(duplicates?.map(({ path }) => path)).toEqual(['LICENSE'])
})

it('refers in the help only to published pages', () => {
  const program = 'dist/program/strandfast.js'
  const help = (...args: string[]) =>
    execFileSync(process.execPath, [program, ...args, '--help'], { encoding: 'utf8' })
  const overview = help()
  const commands = [...overview.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name)
  expect(commands).toEqual(expect.arrayContaining(['serve', 'verify']))
  const pages = [overview, ...commands.map((name) => help(name))].flatMap(
    (text) => text.match(/\bdocs\/[\w./-]*\w/g) ?? [],
  )
  expect(pages).toContain('docs/config.md')
  const published = packages[0]?.files.map(({ path }) => path) ?? []
  expect(pages.filter((page) => !published.includes(page))).toEqual([])
})
