import { chownSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../eventually.js'
import type { PostgresMajor } from '../postgres/postgres-binaries.js'
import { makePostgres, type TestPostgres } from '../postgres/postgres.js'
import { binariesOf, copyData, ownSettings, preparedData, rigSettings, serverNames } from './prepared-data.js'
import { type AnswerFilter, startTcpProxy, type TcpProxy } from './tcp-proxy.js'

/** A server of a rig. */
export interface RigServer extends TestPostgres {
  name: string
  port: number
}

/** The servers as one node reaches them: in order, each through a proxy. */
export interface ProxiedServers {
  /** One address for each server. */
  urls: string[]
  proxies: TcpProxy[]
}

/**
 * A primary and two standbys of PostgreSQL on this machine; a commit waits for one of the standbys.
 * Replication goes through proxies.
 */
export class Rig {
  readonly servers: readonly RigServer[]
  #primary: RigServer
  readonly #dead = new Set<RigServer>()
  /** Former primaries that still run. */
  readonly #former = new Set<RigServer>()
  readonly #followings = new Map<string, TcpProxy>()
  readonly #proxies: TcpProxy[] = []

  private constructor(servers: readonly RigServer[], primary: RigServer) {
    this.servers = servers
    this.#primary = primary
  }

  /** @param settings for all servers */
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

  /** Direct addresses of all servers. */
  get urls(): string[] {
    return this.servers.map(({ url }) => url)
  }

  /** Creates proxied connections to the servers for a node. */
  async proxied(filter?: AnswerFilter): Promise<ProxiedServers> {
    const proxies: TcpProxy[] = []
    for (const { port } of this.servers) proxies.push(await startTcpProxy(port, filter))
    this.#proxies.push(...proxies)
    const urls = this.servers.map(({ url, port }, nth) => url.replace(`:${port}/`, `:${proxies[nth]?.port}/`))
    return { urls, proxies }
  }

  /** Makes a server follow the primary, and starts it if necessary. */
  async follow(standby: RigServer): Promise<void> {
    const proxy = await this.#following(standby)
    const follows = `host=127.0.0.1 port=${proxy.port} user=strandfast application_name=${standby.name}`
    this.#configure(standby, [`primary_conninfo = '${follows}'`, `primary_slot_name = '${standby.name}'`])
    writeAsOwner(standby, 'standby.signal', '')
    standby.reload()
    await standby.start()
  }

  /** Resolves when at least `standbys` standbys have caught up with the primary. */
  async replicated(standbys = 1): Promise<void> {
    const behind = 'SELECT 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()'
    await eventually(async () => (await this.#primary.query(behind)).length >= standbys)
  }

  /** Stops replication to the standbys, so that commits wait. */
  async cutOffStandbys(): Promise<void> {
    for (const standby of this.standbys) (await this.#following(standby)).hold('answers')
  }

  async reconnectStandbys(): Promise<void> {
    for (const standby of this.standbys) (await this.#following(standby)).heal()
  }

  /** The number of connections of the primary that wait for a standby. */
  async waiting(): Promise<number> {
    return (await this.#primary.query(`SELECT 1 FROM pg_stat_activity WHERE ${isWaiting}`)).length
  }

  /** Ends the waits for a standby. @returns the number of connections */
  async endWaiting(by: 'pg_cancel_backend' | 'pg_terminate_backend'): Promise<number> {
    return (await this.#primary.query(`SELECT ${by}(pid) FROM pg_stat_activity WHERE ${isWaiting}`)).length
  }

  /** Kills the primary; what its standbys have not received is lost. */
  async killPrimary(): Promise<void> {
    await this.kill(this.#primary)
  }

  /** Kills the primary, or a former primary. */
  async kill(server: RigServer): Promise<void> {
    await server.kill()
    this.#dead.add(server)
    for (const [key, proxy] of this.#followings) {
      if (!key.endsWith(` ${server.name}`)) continue
      proxy.break()
      proxy.heal()
    }
  }

  /** Promotes the standby that has received most; the other one follows it. */
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

  /** Turns dead and former servers into standbys, and reconnects all. */
  async restore(): Promise<void> {
    for (const server of this.#former) if (!this.#dead.has(server)) await this.kill(server)
    this.#former.clear()
    for (const server of this.#dead) await this.#rebuild(server)
    this.#dead.clear()
    await this.reconnectStandbys()
    await this.replicated(2)
  }

  /** Rebuilds a server as a copy of the current primary. */
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

  /** The state of the servers, for diagnosis. */
  async describe(): Promise<string> {
    const query = `SELECT pg_is_in_recovery(), pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn(),
      (SELECT json_agg(r) FROM (SELECT application_name, state, sync_state, sent_lsn, replay_lsn FROM pg_stat_replication) r) AS standbys,
      (SELECT json_agg(w) FROM (SELECT status, sender_port, latest_end_lsn FROM pg_stat_wal_receiver) w) AS receiver,
      (SELECT json_agg(a) FROM (SELECT state, wait_event, count(*) FROM pg_stat_activity GROUP BY 1, 2) a) AS activity`
    const descriptions = this.servers.map(async (server) => {
      const about = server === this.#primary ? `${server.name}, the primary` : server.name
      const rows = await server.query(query).catch(String)
      return `${about}: ${JSON.stringify(rows)}`
    })
    return (await Promise.all(descriptions)).join('\n')
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

/** Writes a file in a server's data directory, with the owner of the directory. */
function writeAsOwner({ data }: RigServer, name: string, text: string): void {
  const path = join(data, name)
  writeFileSync(path, text)
  const { uid, gid } = statSync(data)
  chownSync(path, uid, gid)
}

const isWaiting = "wait_event = 'SyncRep'"

/** The position up to which a standby has received the WAL. */
async function receivedOf(server: RigServer): Promise<{ server: RigServer; received: bigint }> {
  const lsn = "pg_wal_lsn_diff(coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')::text"
  const [row] = await server.query<{ received: string }>(`SELECT ${lsn} AS received`)
  return { server, received: BigInt(row?.received ?? 0) }
}
