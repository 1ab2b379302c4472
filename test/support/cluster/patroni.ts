import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../eventually.js'
import { postgresBinaries } from '../postgres/postgres-binaries.js'
import { familyOf, serverUser } from '../postgres/postgres.js'
import { freePort } from '../server/free-port.js'

const programs = ['patroni', 'patronictl', 'etcd'].map((name) => join('/usr/bin', name))

/** The missing packages; undefined if tests with Patroni can run. */
export const missingPatroni = programs.every((path) => existsSync(path))
  ? undefined
  : 'no Patroni: apt-get install patroni etcd-server'

const names = ['s0', 's1', 's2'] as const
const scope = 'strandfast'

/**
 * The settings of all servers, as docs/CLUSTER.md recommends. `ttl`, in seconds, is the least that Patroni
 * accepts.
 */
const shared = {
  ttl: 20,
  loop_wait: 1,
  retry_timeout: 3,
  synchronous_mode: true,
  synchronous_mode_strict: true,
  postgresql: {
    use_pg_rewind: true,
    parameters: { max_connections: 100, shared_buffers: '8MB', wal_keep_size: '256MB' },
  },
}

/** A server, as Patroni reports it. */
interface Member {
  name: string
  role: string
  state: string
}

/** A PostgreSQL server and the Patroni that manages it. */
interface Managed {
  name: string
  directory: string
  configuration: string
  port: number
  restPort: number
  patroni: ChildProcess | undefined
}

/** Three PostgreSQL servers on this machine, managed by Patroni with etcd. */
export class PatroniRig {
  readonly #directory: string
  readonly #etcd: ChildProcess
  readonly #servers: readonly Managed[]

  private constructor(directory: string, etcd: ChildProcess, servers: readonly Managed[]) {
    this.#directory = directory
    this.#etcd = etcd
    this.#servers = servers
  }

  /** Resolves when there is a leader with a synchronous standby. */
  static async start(): Promise<PatroniRig> {
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-patroni-'))
    own(directory)
    const { etcd, port } = await startEtcd(directory)
    const servers: Managed[] = []
    for (const name of names) servers.push(await managed(directory, name, port))
    const rig = new PatroniRig(directory, etcd, servers)
    for (const server of servers) run(server)
    await rig.whole()
    return rig
  }

  /** Addresses of all servers. */
  get urls(): string[] {
    return this.#servers.map(({ port }) => `postgres://strandfast@127.0.0.1:${port}/postgres`)
  }

  /** The primary, according to Patroni. */
  async leader(): Promise<string | undefined> {
    return (await this.#members()).find(({ role, state }) => role === 'leader' && state === 'running')?.name
  }

  /** Resolves when all servers run, and one of them is a synchronous standby. */
  async whole(): Promise<void> {
    await eventually(async () => {
      const members = await this.#members()
      const running = members.filter(({ state }) => state === 'running' || state === 'streaming')
      const isSynchronous = members.some(({ role }) => role === 'sync_standby')
      return running.length === names.length && isSynchronous && (await this.leader()) !== undefined
    })
  }

  /** Promotes the synchronous standby. @returns the output of patronictl */
  switchover(leader: string): string {
    const [server] = this.#servers
    if (server === undefined) throw new Error('A rig needs a server')
    const args = ['-c', server.configuration, 'switchover', scope, '--leader', leader, '--force']
    return execFileSync('/usr/bin/patronictl', args, { encoding: 'utf8', env: environment(this.#directory) })
  }

  /** Kills a server and its Patroni, as if its machine were off. */
  async kill(name: string): Promise<void> {
    const server = this.#of(name)
    const { patroni } = server
    const [first = ''] = readFileSync(join(server.directory, 'data/postmaster.pid'), 'utf8').split('\n')
    if (patroni === undefined) throw new Error(`Expected ${name} to run`)
    // Patroni first, or it would restart the server.
    patroni.kill('SIGKILL')
    for (const pid of familyOf(Number(first))) killIfThere(pid)
    await once(patroni, 'exit')
    server.patroni = undefined
  }

  /** Starts a server again after `kill`. */
  restart(name: string): void {
    run(this.#of(name))
  }

  /** Resolves when another server is the leader. */
  async leads(before: string): Promise<string> {
    let leader: string | undefined
    await eventually(async () => {
      leader = await this.leader()
      return leader !== undefined && leader !== before
    })
    return leader ?? before
  }

  async remove(): Promise<void> {
    for (const { name, patroni } of this.#servers) if (patroni !== undefined) await this.kill(name)
    this.#etcd.kill('SIGKILL')
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #of(name: string): Managed {
    const server = this.#servers.find((one) => one.name === name)
    if (server === undefined) throw new Error(`Expected ${name} to be one of the servers`)
    return server
  }

  /** The state of all servers, as reported by a running Patroni. */
  async #members(): Promise<Member[]> {
    for (const { restPort, patroni } of this.#servers) {
      if (patroni === undefined) continue
      const answer = await fetch(`http://127.0.0.1:${restPort}/cluster`).catch(() => undefined)
      if (answer?.status !== 200) continue
      const cluster: unknown = await answer.json()
      if (isCluster(cluster)) return cluster.members
    }
    return []
  }
}

function isCluster(cluster: unknown): cluster is { members: Member[] } {
  return (
    typeof cluster === 'object' && cluster !== null && 'members' in cluster && Array.isArray(cluster.members)
  )
}

async function startEtcd(directory: string): Promise<{ etcd: ChildProcess; port: number }> {
  const [port, peers] = [await freePort(), await freePort()]
  const [clientUrl, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peers}`]
  const options = {
    'data-dir': join(directory, 'etcd'),
    'listen-client-urls': clientUrl,
    'advertise-client-urls': clientUrl,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `default=${peerUrl}`,
  }
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  const etcd = spawn('/usr/bin/etcd', args, { ...serverUser(), cwd: directory, stdio: 'ignore' })
  await eventually(async () => {
    const answer = await fetch(`${clientUrl}/health`).catch(() => undefined)
    return answer?.status === 200
  })
  return { etcd, port }
}

async function managed(parent: string, name: string, etcdPort: number): Promise<Managed> {
  const directory = join(parent, name)
  mkdirSync(directory)
  own(directory)
  const [port, restPort] = [await freePort(), await freePort()]
  const configuration = join(directory, 'patroni.json')
  const [address, restAddress] = [`127.0.0.1:${port}`, `127.0.0.1:${restPort}`]
  // JSON is a subset of YAML.
  const settings = {
    scope,
    name,
    restapi: { listen: restAddress, connect_address: restAddress },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: { dcs: shared, initdb: [{ encoding: 'UTF8' }, 'data-checksums'] },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: join(directory, 'data'),
      bin_dir: postgresBinaries(15),
      pgpass: join(directory, 'pgpass'),
      pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
      authentication: { superuser: { username: 'strandfast' }, replication: { username: 'strandfast' } },
      parameters: { unix_socket_directories: directory },
    },
  }
  writeFileSync(configuration, JSON.stringify(settings))
  return { name, directory, configuration, port, restPort, patroni: undefined }
}

function run(server: Managed): void {
  const { directory, configuration } = server
  const options = { ...serverUser(), cwd: directory, env: environment(directory) }
  server.patroni = spawn('/usr/bin/patroni', [configuration], { ...options, stdio: 'ignore' })
}

const environment = (home: string) => ({ PATH: '/usr/bin:/bin', HOME: home, LANG: 'C.UTF-8' })

/** Makes the user that runs PostgreSQL the owner of a directory. */
function own(directory: string): void {
  const { uid, gid } = serverUser()
  if (uid !== undefined && gid !== undefined) chownSync(directory, uid, gid)
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has ended already.
  }
}
