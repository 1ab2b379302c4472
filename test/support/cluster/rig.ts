import { chownSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../eventually.js'
import type { PostgresMajor } from '../postgres/postgres-binaries.js'
import { makePostgres, type TestPostgres } from '../postgres/postgres.js'
import { binariesOf, copyData, ownSettings, preparedData, rigSettings, serverNames } from './prepared-data.js'
import { type AnswerFilter, startTcpProxy, type TcpProxy } from './tcp-proxy.js'

/** One of the servers of a rig. */
export interface RigServer extends TestPostgres {
  name: string
  port: number
}

/** A node's ways to the servers, in their order, each through a proxy. */
export interface Ways {
  /** Addresses, one a server. */
  urls: string[]
  proxies: TcpProxy[]
}

/**
 * A primary and two standbys of PostgreSQL on this machine, one of which has to have each commit before it is answered.
 * Standbys follow through proxies.
 */
export class Rig {
  readonly servers: readonly RigServer[]
  #primary: RigServer
  readonly #dead = new Set<RigServer>()
  /** Were primary until another one was promoted. */
  readonly #former = new Set<RigServer>()
  readonly #followings = new Map<string, TcpProxy>()
  readonly #proxies: TcpProxy[] = []

  private constructor(servers: readonly RigServer[], primary: RigServer) {
    this.servers = servers
    this.#primary = primary
  }

  /** @param settings of all servers */
  static async start(
    major: PostgresMajor = 15,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Rig> {
    const [copyOf, binaries] = [await preparedData(major), binariesOf(major)]
    const servers: RigServer[] = []
    for (const name of serverNames) {
      const server = await makePostgres({ settings: { ...rigSettings, ...settings }, binaries, copyOf })
      servers.push(Object.assign(server, { name, port: Number(new URL(server.url).port) }))
    }
    const [primary, ...standbys] = servers
    if (primary === undefined) throw new Error('Expected a rig to have a server')
    const rig = new Rig(servers, primary)
    rig.#configure(primary)
    await primary.start()
    await Promise.all(standbys.map((standby) => rig.follow(standby)))
    await rig.replicated(standbys.length)
    return rig
  }

  get primary(): RigServer {
    return this.#primary
  }

  get standbys(): RigServer[] {
    return this.servers.filter((server) => server !== this.#primary)
  }

  /** Addresses of all servers, direct ones. */
  get urls(): string[] {
    return this.servers.map(({ url }) => url)
  }

  /** Ways of another node to the servers. */
  async ways(filter?: AnswerFilter): Promise<Ways> {
    const proxies: TcpProxy[] = []
    for (const { port } of this.servers) proxies.push(await startTcpProxy(port, filter))
    this.#proxies.push(...proxies)
    const urls = this.servers.map(({ url, port }, nth) => url.replace(`:${port}/`, `:${proxies[nth]?.port}/`))
    return { urls, proxies }
  }

  /** Has a server follow the primary; one that does not run is started. */
  async follow(standby: RigServer): Promise<void> {
    const proxy = await this.#following(standby)
    const follows = `host=127.0.0.1 port=${proxy.port} user=strandfast application_name=${standby.name}`
    this.#configure(standby, [`primary_conninfo = '${follows}'`, `primary_slot_name = '${standby.name}'`])
    writeAsOwner(standby, 'standby.signal', '')
    standby.reload()
    await standby.start()
  }

  /** Resolves when so many standbys, at least, have all that the primary has. */
  async replicated(standbys = 1): Promise<void> {
    const behind = 'SELECT 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()'
    await eventually(async () => (await this.#primary.query(behind)).length >= standbys)
  }

  /** Holds what the primary sends to its standbys: commits wait. */
  async cutOffStandbys(): Promise<void> {
    for (const standby of this.standbys) (await this.#following(standby)).hold('answers')
  }

  async reconnectStandbys(): Promise<void> {
    for (const standby of this.standbys) (await this.#following(standby)).heal()
  }

  /** Connections of the primary that wait for a standby. */
  async waiting(): Promise<number> {
    return (await this.#primary.query(`SELECT 1 FROM pg_stat_activity WHERE ${isWaiting}`)).length
  }

  /** Ends the waiting for a standby. @returns of how many connections */
  async endWaiting(by: 'pg_cancel_backend' | 'pg_terminate_backend'): Promise<number> {
    return (await this.#primary.query(`SELECT ${by}(pid) FROM pg_stat_activity WHERE ${isWaiting}`)).length
  }

  /** Kills the primary. What its standbys have not received is lost with it. */
  async killPrimary(): Promise<void> {
    await this.kill(this.#primary)
  }

  /** Kills a server: the primary, or one that was until another one was promoted beside it. */
  async kill(server: RigServer): Promise<void> {
    await server.kill()
    this.#dead.add(server)
    for (const [key, proxy] of this.#followings) {
      if (!key.endsWith(` ${server.name}`)) continue
      proxy.break()
      proxy.heal()
    }
  }

  /** Makes the standby that has most the primary; the other one follows it. */
  async promote(): Promise<RigServer> {
    const received = await Promise.all(this.standbys.map(receivedOf))
    const [first, second] = received.sort((one, other) => (one.received > other.received ? -1 : 1))
    if (first === undefined || second === undefined) throw new Error('Expected two standbys')
    await first.server.query('SELECT pg_promote(true, 60)')
    this.#former.add(this.#primary)
    this.#primary = first.server
    await this.follow(second.server)
    await this.replicated()
    return first.server
  }

  /** Makes servers that were primary standbys again, and has all connected. */
  async restore(): Promise<void> {
    for (const server of this.#former) if (!this.#dead.has(server)) await this.kill(server)
    this.#former.clear()
    for (const server of this.#dead) await this.#rebuild(server)
    this.#dead.clear()
    await this.reconnectStandbys()
    await this.replicated(2)
  }

  /** Begins a server anew, as a copy of what is the primary now. */
  async #rebuild(server: RigServer): Promise<void> {
    const client = await this.#primary.connect()
    await client.query("SELECT pg_backup_start('rig', true)")
    copyData(this.#primary.data, server.data)
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)')
    await client.end()
    for (const name of ['postmaster.pid', 'postmaster.opts']) rmSync(join(server.data, name), { force: true })
    writeAsOwner(server, 'backup_label', rows[0]?.labelfile ?? '')
    await this.follow(server)
  }

  /** What its servers say of themselves, for a reader of what went wrong. */
  async describe(): Promise<string> {
    const look = `SELECT pg_is_in_recovery(), pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn(),
      (SELECT json_agg(r) FROM (SELECT application_name, state, sync_state, sent_lsn, replay_lsn FROM pg_stat_replication) r) AS standbys,
      (SELECT json_agg(w) FROM (SELECT status, sender_port, latest_end_lsn FROM pg_stat_wal_receiver) w) AS receiver,
      (SELECT json_agg(a) FROM (SELECT state, wait_event, count(*) FROM pg_stat_activity GROUP BY 1, 2) a) AS activity`
    const told = this.servers.map(async (server) => {
      const about = server === this.#primary ? `${server.name}, the primary` : server.name
      const rows = await server.query(look).catch(String)
      return `${about}: ${JSON.stringify(rows)}`
    })
    return (await Promise.all(told)).join('\n')
  }

  async remove(): Promise<void> {
    await Promise.all([...this.#proxies, ...this.#followings.values()].map((proxy) => proxy.stop()))
    await Promise.all(this.servers.map((server) => server.remove()))
  }

  #configure(server: RigServer, lines: readonly string[] = []): void {
    const names = `synchronous_standby_names = 'ANY 1 (${serverNames.join(', ')})'`
    writeAsOwner(server, ownSettings, [names, ...lines, ''].join('\n'))
  }

  async #following(standby: RigServer): Promise<TcpProxy> {
    const key = `${standby.name} ${this.#primary.name}`
    const proxy = this.#followings.get(key) ?? (await startTcpProxy(this.#primary.port))
    this.#followings.set(key, proxy)
    return proxy
  }
}

/** Writes a file of a server's data directory, which it may change itself. */
function writeAsOwner({ data }: RigServer, name: string, text: string): void {
  const path = join(data, name)
  writeFileSync(path, text)
  const { uid, gid } = statSync(data)
  chownSync(path, uid, gid)
}

const isWaiting = "wait_event = 'SyncRep'"

/** How far a standby has received what the primary wrote. */
async function receivedOf(server: RigServer): Promise<{ server: RigServer; received: bigint }> {
  const lsn = "pg_wal_lsn_diff(coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')::text"
  const [row] = await server.query<{ received: string }>(`SELECT ${lsn} AS received`)
  return { server, received: BigInt(row?.received ?? 0) }
}
