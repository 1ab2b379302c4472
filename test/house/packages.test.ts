import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { expect, it } from 'vitest'

interface Manifest {
  name?: string
  version?: string
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  bundleDependencies?: string[]
  engines?: { node?: string }
}
interface Lockfile {
  packages: Record<string, Manifest & { optional?: boolean; resolved?: string; link?: boolean }>
}

const manifest: Manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const lockfile: Lockfile = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const peersManifest: Manifest = JSON.parse(readFileSync('bench/peers/package.json', 'utf8'))
const peersLockfile: Lockfile = JSON.parse(readFileSync('bench/peers/package-lock.json', 'utf8'))
/** The packages that are kept in this repository. */
const workspaces = readdirSync('packages').map((name): Manifest =>
  JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8')),
)
const uws = 'node_modules/uWebSockets.js'

/** The oldest Node that package.json allows, as [major, minor, patch]. */
const oldest = [20, 19, 0]

function compare(left: number[], right: number[]): number {
  const place = left.findIndex((part, index) => part !== (right[index] ?? 0))
  return place < 0 ? 0 : (left[place] ?? 0) - (right[place] ?? 0)
}

/** Whether one alternative of an `engines` range takes the version. Throws at a form that it does not know. */
function takes(alternative: string, version: number[]): boolean {
  if (alternative === '*') return true
  const found = /^(>=|\^|)\s*(\d+)(?:\.(\d+|x|\*))?(?:\.(\d+|x|\*))?$/.exec(alternative)
  if (!found) throw new Error(`Not a known form of a version range: ${alternative}`)
  const [, operator, ...parts] = found
  const least = parts.map((part) => Number(part) || 0)
  return compare(version, least) >= 0 && (operator === '>=' || version[0] === least[0])
}

const accepts = (range: string, version: number[]) =>
  range.split('||').some((alternative) => takes(alternative.trim(), version))

it('names every package by one exact version', () => {
  const ranges = [manifest, peersManifest, ...workspaces]
    .flatMap((one) => [one.dependencies, one.devDependencies, one.optionalDependencies])
    .flatMap((group) => Object.entries(group ?? {}))
    .filter(([, version]) => !/^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
  expect(ranges).toEqual([])
})

it('gives all packages of this repository one version, which the server asks for', () => {
  expect(workspaces.map(({ name }) => name)).toContain('@strandfast/client')
  expect(workspaces.filter(({ version }) => version !== manifest.version)).toEqual([])
  expect(manifest.dependencies?.['@strandfast/client']).toBe(manifest.version)
  expect(manifest.bundleDependencies).toEqual(['@strandfast/client'])
})

it.each([
  ['the lockfile', lockfile],
  ["the lockfile of the bench's peers", peersLockfile],
])('binds %s to no address that packages came from', (_, lockfile) => {
  const addresses = Object.entries(lockfile.packages).filter(
    ([, { resolved, link }]) => resolved !== undefined && link !== true,
  )
  expect(addresses).toEqual([])
})

it.each([
  ['the packages', lockfile],
  ["those of the bench's peers", peersLockfile],
])('locks %s for every platform, which npm ci asks for on each of them', (_, lockfile) => {
  const missing = Object.entries(lockfile.packages).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {}).filter(
      (name) =>
        !lockfile.packages[`node_modules/${name}`] && !lockfile.packages[`${path}/node_modules/${name}`],
    ),
  )
  expect(missing).toEqual([])
})

it('reads version ranges', () => {
  expect(accepts('^20.19.0 || >=22.12.0', oldest)).toBe(true)
  expect(accepts('>= 20.x', oldest)).toBe(true)
  expect(accepts('^20.20.0', oldest)).toBe(false)
  expect(accepts('^18.0.0 || >=22', oldest)).toBe(false)
  expect(accepts('18.* || 20', oldest)).toBe(true)
  expect(() => accepts('latest', oldest)).toThrow('Not a known form')
})

it('needs only packages that run on Node 20.19', () => {
  // The package says >=22 but carries binaries for Node 18 to 22, looked for below.
  const refusing = Object.entries(lockfile.packages)
    .filter(([path, { engines }]) => path !== uws && engines?.node && !accepts(engines.node, oldest))
    .map(([path, { engines }]) => `${path}: ${engines?.node}`)
  expect(refusing).toEqual([])
})

it.each([
  ['Node 20', '115'],
  ['Node 22', '127'],
])('has the HTTP library built for %s on Linux', (_, abi) => {
  expect(existsSync(`${uws}/dist/bin/uws_linux_x64_${abi}.node`)).toBe(true)
})

it('has the HTTP library built for the Node that runs', () => {
  const { platform, arch, versions } = process
  expect(existsSync(`${uws}/dist/bin/uws_${platform}_${arch}_${versions.modules}.node`)).toBe(true)
})
