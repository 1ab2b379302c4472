import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nodeVersions, noOtherRuntime, runtime } from '../../scripts/runtimes.mjs'
import { leftOut } from '../support/faults/rounds.js'
import { call, testRootKey } from '../support/server/server.js'

/*
 * Both packages as users get them: packed, each installed with npm into an empty folder, and used on each
 * Node version that the README lists, or only on STRANDFAST_TEST_NODE, the path of a Node binary.
 */

/** The Node versions to test: the name of each, and a function that returns its path. */
const nodes: [name: string, find: () => string][] = []
const only = process.env['STRANDFAST_TEST_NODE']
if (only !== undefined) nodes.push([only, () => only])
else if (leftOut(noOtherRuntime)) nodes.push([process.version, () => process.execPath])
else {
  // Only the oldest and the newest; test/e2e/nodes.slow.test.ts starts the program on each version.
  for (const version of [nodeVersions[20], nodeVersions[26]])
    nodes.push([version, () => runtime('node', version)])
}

/** The Node binary that programs find. */
let node = process.execPath
const environment = () => ({
  PATH: `${dirname(resolve(node))}:${process.env['PATH']}`,
  HOME: process.env['HOME'],
  npm_config_cache: process.env['npm_config_cache'],
  npm_config_registry: process.env['npm_config_registry'],
  // Without it, npm does not trust a proxy with its own certificate, and retries silently for minutes.
  NODE_EXTRA_CA_CERTS: process.env['NODE_EXTRA_CA_CERTS'],
})
const tool = (name: string) => resolve('node_modules', name)

interface Run {
  code: number
  stdout: string
  stderr: string
}

/** Runs a program. @returns its exit code and output */
async function run(cwd: string, command: string, ...args: string[]): Promise<Run> {
  try {
    return { code: 0, ...(await promisify(execFile)(command, args, { cwd, env: environment() })) }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && 'stdout' in error && 'stderr' in error)) throw error
    return { code: Number(error.code ?? 1), stdout: String(error.stdout), stderr: String(error.stderr) }
  }
}

const folder = mkdtempSync(join(tmpdir(), 'strandfast-packages-'))
const serverHome = join(folder, 'server')
const clientHome = join(folder, 'client')
/** The address of the server on the Node version under test. */
let url: string

/** Packs a package. @returns the path of the tarball */
async function pack(from: string): Promise<string> {
  const packed = await run(from, 'npm', 'pack', '--ignore-scripts', '--silent', '--pack-destination', folder)
  expect(packed.code, packed.stderr).toBe(0)
  return join(folder, packed.stdout.trim().split('\n').at(-1) ?? '')
}

async function install(home: string, ...tarballs: string[]): Promise<void> {
  mkdirSync(home)
  writeFileSync(join(home, 'package.json'), '{ "private": true, "type": "module" }')
  const installed = await run(
    home,
    'npm',
    'install',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    ...tarballs,
  )
  expect(installed.code, installed.stderr).toBe(0)
}

/** Runs a user's module in a folder. @returns its output */
async function runModule(home: string, code: string): Promise<string> {
  writeFileSync(join(home, 'user.mjs'), code)
  const { code: ended, stdout, stderr } = await run(home, node, 'user.mjs')
  expect(ended, stderr).toBe(0)
  return stdout.trim()
}

beforeAll(async () => {
  const client = await pack('packages/client')
  await install(serverHome, await pack('.'))
  await install(clientHome, client)
}, 300_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Starts the installed server on a new data directory. @returns its process when it listens */
async function serve(dataDir: string): Promise<ChildProcess> {
  const settings = { SERVICE_PORT: '0', SERVICE_DATA_DIR: dataDir, SERVICE_ROOT_API_KEY: testRootKey }
  const server = spawn('npx', ['--no-install', 'strandfast', 'serve'], {
    cwd: serverHome,
    env: { ...environment(), ...settings, SERVICE_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  if (server.stdout === null) throw new Error('Expected a pipe')
  for await (const line of createInterface({ input: server.stdout })) {
    const listening = /^listening on (\S+)$/.exec(line)?.[1]
    if (listening === undefined) continue
    url = listening
    return server
  }
  throw new Error('The server ended before it listened')
}

/** A module that writes one record and prints its seq. */
const writing = (
  client: string,
  collection: string,
) => `import { ServiceClient, ServiceError } from '${client}'

const service = new ServiceClient({ url: '${url}', apiKey: '${testRootKey}' })
const { seq } = await service.collection('${collection}').write({ lit: true })
console.log(seq, ServiceError.name)
`

describe.each(nodes)('on Node %s', (name, find) => {
  let server: ChildProcess | undefined

  beforeAll(async () => {
    node = find()
    server = await serve(`data-${nodes.findIndex(([one]) => one === name)}`)
  }, 240_000)

  afterAll(async () => {
    node = process.execPath
    if (server?.pid === undefined || server.exitCode !== null) return
    const ended = once(server, 'exit')
    process.kill(-server.pid, 'SIGTERM')
    await ended
  })

  it('the server accepts a record, and its export verifies', async () => {
    const address = { url, rootKey: testRootKey }
    const agent = await call(address, 'POST /v1/agents', { body: { name: 'sensors', zone: 'free' } })
    expect(agent.status).toBe(201)
    const written = await call(address, 'POST /v1/agents/sensors/records', {
      body: { data: { celsius: 21 } },
    })
    expect(written).toMatchObject({ status: 201, body: { seq: 1 } })
    const exported = await call(address, 'GET /v1/strand/export?agent=sensors')
    const changes = exported.text.replace(/(?<name>celsius\D*)21/, '$<name>22')
    expect(changes).not.toBe(exported.text)
    writeFileSync(join(serverHome, 'sensors.ndjson'), exported.text)
    writeFileSync(join(serverHome, 'changed.ndjson'), changes)
    const verify = (file: string) =>
      run(
        serverHome,
        'npx',
        '--no-install',
        'strandfast',
        'verify',
        file,
        '--public-key',
        agent.body.public_key,
      )
    const [held, changed] = await Promise.all([verify('sensors.ndjson'), verify('changed.ndjson')])
    expect(held.stdout).toContain('VERIFIED 2 records of sensors')
    expect(held.code).toBe(0)
    expect(changed.code).toBe(1)
  })

  it('the program has the version of its package.json', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    const shown = await run(serverHome, 'npx', '--no-install', 'strandfast', '--version')
    expect(shown).toMatchObject({ code: 0, stdout: `strandfast ${version}\n` })
  })

  it('the package of the server contains the client', async () => {
    expect(await runModule(serverHome, writing('strandfast/client', 'by-server'))).toBe('1 ServiceError')
  })

  it('the package of the client writes a record', async () => {
    expect(await runModule(clientHome, writing('@strandfast/client', 'by-client'))).toBe('1 ServiceError')
  })
})

describe('the package of the server, installed alone', () => {
  it('contains no load generator', () => {
    const installed = readdirSync(join(serverHome, 'node_modules'))
    expect(installed).toContain('strandfast')
    expect(installed).not.toContain('autocannon')
  })
})

describe('the package of the client, installed alone', () => {
  it('installs no other package', () => {
    const installed = readdirSync(join(clientHome, 'node_modules')).filter((name) => !name.startsWith('.'))
    expect(installed).toEqual(['@strandfast'])
    expect(readdirSync(join(clientHome, 'node_modules/@strandfast'))).toEqual(['client'])
  })
})

const use = `import { ServiceClient, type RecordView, verifyExport } from 'CLIENT'

interface Room { lit: boolean }
const rooms = new ServiceClient({ url: 'http://127.0.0.1:8787', apiKey: 'key' }).collection<Room>('rooms')
export async function seq(): Promise<number> {
  const { hash, seq } = await rooms.write({ lit: true })
  const view: RecordView<Room> = await rooms.get(hash)
  return view.payload?.lit === true ? seq : (await rooms.latest()).records.length
}
export { verifyExport }
`
const wrongUse = `${use}\nexport const wrong = async (): Promise<string> => (await rooms.write({ lit: true })).seq\n`

describe.each([
  ['strandfast/client', serverHome],
  ['@strandfast/client', clientHome],
])('the types of %s', { timeout: 180_000 }, (client, home) => {
  const compilers = {
    'current TypeScript': tool('typescript/bin/tsc'),
    'TypeScript 5': resolve('packages/openapi-types/node_modules/typescript/bin/tsc'),
  }

  it.each([
    [
      'a browser and a bundler',
      { module: 'esnext', moduleResolution: 'bundler', lib: ['es2023', 'dom', 'dom.iterable'], types: [] },
    ],
    ['Node', { module: 'nodenext', lib: ['es2023'], types: ['node'], typeRoots: [tool('@types')] }],
  ])('are complete for %s', async (_, options) => {
    const strict = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false }
    const compilerOptions = { ...strict, noEmit: true, target: 'es2022', ...options }
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['user.ts'] }))
    for (const [name, compiler] of Object.entries(compilers)) {
      writeFileSync(join(home, 'user.ts'), use.replaceAll('CLIENT', client))
      expect((await run(home, process.execPath, compiler)).stdout, name).toBe('')
      writeFileSync(join(home, 'user.ts'), wrongUse.replaceAll('CLIENT', client))
      const refused = await run(home, process.execPath, compiler)
      expect(refused.stdout, name).toContain("'number' is not assignable to type 'string'")
    }
  })
})

describe('the generated type declarations', () => {
  it('are identical to the types of the schemas', async () => {
    const written = resolve('packages/client/dist/types/wire')
    const home = join(folder, 'written')
    mkdirSync(home)
    symlinkSync(resolve('node_modules'), join(home, 'node_modules'))
    const modules = readdirSync(written).map((file) => file.replace('.d.ts', ''))
    const lines = modules.flatMap((module) => {
      const declared = readFileSync(join(written, `${module}.d.ts`), 'utf8')
      return [...declared.matchAll(/^export type (\w+)/gm)].map(([, name]) => {
        const types = [resolve('dist/src/wire'), written].map(
          (from) => `import('${from}/${module}.js').${name}`,
        )
        return `export const ${module.replaceAll('-', '_')}_${name}: Same<${types.join(', ')}> = true`
      })
    })
    expect(lines.length).toBeGreaterThan(50)
    // The two functions are assignable only if the compiler considers the types identical.
    const same = `type Plain<T> = T extends object ? { [K in keyof T]: Plain<T[K]> } : T
type Same<A, B> = (<T>() => T extends Plain<A> ? 1 : 2) extends <T>() => T extends Plain<B> ? 1 : 2 ? true : false`
    const compile = async (...more: string[]) => {
      writeFileSync(join(home, 'same.ts'), [same, ...lines, ...more].join('\n'))
      const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023']
      return run(home, process.execPath, tool('typescript/bin/tsc'), ...options, 'same.ts')
    }
    expect((await compile()).stdout).toBe('')
    const records = `import('${written}/records.js')`
    const differing = `export const planted: Same<${records}.WriteResponse, ${records}.RecordView> = true`
    expect((await compile(differing)).stdout).toContain("'true' is not assignable to type 'false'")
  })
})
