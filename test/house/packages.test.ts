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
/** The packages of this repository. */
const workspaces = readdirSync('packages').map((name): Manifest =>
  JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8')),
)
const uws = 'node_modules/uWebSockets.js'

/** The oldest Node version that package.json allows, as [major, minor, patch]. */
const oldest = [20, 19, 0]

function compare(left: number[], right: number[]): number {
  const index = left.findIndex((part, at) => part !== (right[at] ?? 0))
  return index < 0 ? 0 : (left[index] ?? 0) - (right[index] ?? 0)
}

/** Whether an alternative of an `engines` range includes the version. Throws for an unknown form. */
function includes(alternative: string, version: number[]): boolean {
  if (alternative === '*') return true
  const found = /^(>=|\^|)\s*(\d+)(?:\.(\d+|x|\*))?(?:\.(\d+|x|\*))?$/.exec(alternative)
  if (!found) throw new Error(`Not a known form of a version range: ${alternative}`)
  const [, operator, ...parts] = found
  const least = parts.map((part) => Number(part) || 0)
  return compare(version, least) >= 0 && (operator === '>=' || version[0] === least[0])
}

const accepts = (range: string, version: number[]) =>
  range.split('||').some((alternative) => includes(alternative.trim(), version))

it('pins every package to one exact version', () => {
  const ranges = [manifest, peersManifest, ...workspaces]
    .flatMap((one) => [one.dependencies, one.devDependencies, one.optionalDependencies])
    .flatMap((group) => Object.entries(group ?? {}))
    .filter(([, version]) => !/^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
  expect(ranges).toEqual([])
})

it('uses one version for all packages of this repository, on which the server depends', () => {
  expect(workspaces.map(({ name }) => name)).toContain('@strandfast/client')
  expect(workspaces.filter(({ version }) => version !== manifest.version)).toEqual([])
  expect(manifest.dependencies?.['@strandfast/client']).toBe(manifest.version)
  expect(manifest.bundleDependencies).toEqual(['@strandfast/client'])
})

it.each([
  ['the lockfile', lockfile],
  ["the lockfile of the bench's peers", peersLockfile],
])('stores no download addresses in %s', (_, lockfile) => {
  const addresses = Object.entries(lockfile.packages).filter(
    ([, { resolved, link }]) => resolved !== undefined && link !== true,
  )
  expect(addresses).toEqual([])
})

it.each([
  ['packages', lockfile],
  ["packages of the bench's peers", peersLockfile],
])('locks %s for every platform, as npm ci requires', (_, lockfile) => {
  const missing = Object.entries(lockfile.packages).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {}).filter(
      (name) =>
        !lockfile.packages[`node_modules/${name}`] && !lockfile.packages[`${path}/node_modules/${name}`],
    ),
  )
  expect(missing).toEqual([])
})

it('parses version ranges', () => {
  expect(accepts('^20.19.0 || >=22.12.0', oldest)).toBe(true)
  expect(accepts('>= 20.x', oldest)).toBe(true)
  expect(accepts('^20.20.0', oldest)).toBe(false)
  expect(accepts('^18.0.0 || >=22', oldest)).toBe(false)
  expect(accepts('18.* || 20', oldest)).toBe(true)
  expect(() => accepts('latest', oldest)).toThrow('Not a known form')
})

it('depends only on packages that run on Node 20.19', () => {
  // The package declares >=22 but contains binaries for Node 18 to 22, which are checked below.
  const refusing = Object.entries(lockfile.packages)
    .filter(([path, { engines }]) => path !== uws && engines?.node && !accepts(engines.node, oldest))
    .map(([path, { engines }]) => `${path}: ${engines?.node}`)
  expect(refusing).toEqual([])
})

it.each([
  ['Node 20', '115'],
  ['Node 22', '127'],
])('contains the HTTP library for %s on Linux', (_, abi) => {
  expect(existsSync(`${uws}/dist/bin/uws_linux_x64_${abi}.node`)).toBe(true)
})

it('contains the HTTP library for the running Node version', () => {
  const { platform, arch, versions } = process
  expect(existsSync(`${uws}/dist/bin/uws_${platform}_${arch}_${versions.modules}.node`)).toBe(true)
})
