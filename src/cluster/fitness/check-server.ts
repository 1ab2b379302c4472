import { DatabaseError } from 'pg'
import { limits } from '../../base/limits/limits.js'
import { isText, listOf, members } from '../../base/shape.js'
import { type DatabaseCheck, fine, type CheckResult, wrong } from './check-bench.js'
import { keepsSessions, lostSessions } from '../database/server-check.js'
import { Session } from '../database/session.js'

/* Which servers there are, and whether they keep what they acknowledge. */

const VERSION_MIN = 150_000

/** The servers of the list: which of them takes writes, and of which version it is. */
export const serversCheck: DatabaseCheck = {
  subject: 'servers',
  async run({ urls }) {
    const found = await Promise.all(urls.map(roleOf))
    const writing = found.filter(({ role }) => role === 'takes writes')
    const list = found.map(({ host, role }) => `${host} ${role}`).join('; ')
    const [first] = writing
    if (first === undefined) return wrong(list)
    if (writing.length > 1)
      return wrong(`${list}: expected one that takes writes, or they are no servers of one database`)
    const isAway = found.some(({ role }) => role !== 'takes writes' && role !== 'only reads')
    return { level: isAway ? 'warn' : 'ok', detail: list }
  },
}

async function roleOf(url: string): Promise<{ host: string; role: string }> {
  const { host } = new URL(url)
  try {
    const session = await Session.open([url])
    await session.close()
    return { host, role: 'takes writes' }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { host, role: text.includes('only reads') ? 'only reads' : `cannot be used (${text})` }
  }
}

/** The version that the server has, or says that it has. */
export const versionCheck: DatabaseCheck = {
  subject: 'version',
  async run(bench) {
    const session = await bench.session()
    const [version, number] = [
      await textOf(session, 'SELECT version() AS value'),
      await settingOf(session, 'server_version_num'),
    ]
    const detail = version ?? 'It does not say which it is'
    if (number !== undefined && Number(number) < VERSION_MIN)
      return wrong(`${detail}: expected PostgreSQL 15 or newer`)
    if (version?.startsWith('PostgreSQL') === true && !/yugabyte|-YB-/i.test(version)) return fine(detail)
    return { level: 'warn', detail: `${detail}: Strandfast is tested with PostgreSQL` }
  },
}

/** Settings without which a crash loses what was acknowledged. */
export const settingsCheck: DatabaseCheck = {
  subject: 'disk',
  async run(bench) {
    const session = await bench.session()
    const off: string[] = []
    const unknown: string[] = []
    for (const name of ['fsync', 'full_page_writes']) {
      const value = await settingOf(session, name)
      if (value === undefined) unknown.push(name)
      if (value === 'off') off.push(name)
    }
    if (off.length > 0)
      return wrong(`${off.join(' and ')} = off: it would lose what it has acknowledged, so switch it on`)
    if (unknown.length > 0) return { level: 'warn', detail: `It does not tell ${unknown.join(' and ')}` }
    return fine('fsync and full_page_writes are on')
  },
}

/** Whether a commit waits for another server, and how many are there. */
export const standbysCheck: DatabaseCheck = {
  subject: 'standbys',
  async run(bench): Promise<CheckResult> {
    const session = await bench.session()
    const [names, waits] = [
      await settingOf(session, 'synchronous_standby_names'),
      await settingOf(session, 'synchronous_commit'),
    ]
    if (names === undefined)
      return { level: 'warn', detail: 'It does not tell synchronous_standby_names: see its own replication' }
    if (names === '')
      return {
        level: 'warn',
        detail:
          "No commit waits for another server: what was acknowledged is lost with this one. Set synchronous_standby_names = 'ANY 1 (…)', with two standbys",
      }
    const counting =
      "SELECT count(*)::text AS value FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
    const count = Number((await textOf(session, counting)) ?? 0)
    const detail = `${names}, of which ${count} follow; synchronous_commit = ${waits ?? 'unknown'}`
    if (count >= 2) return fine(detail)
    return { level: 'warn', detail: `${detail}: with fewer than 2 every commit waits as soon as one is away` }
  },
}

/** A connection stays one session of one server: a pooler may hand it another one with each transaction. */
export const sessionsCheck: DatabaseCheck = {
  subject: 'sessions',
  async run(bench) {
    const opened = Array.from({ length: limits.clusterCheckConnections }, () => bench.session())
    const sessions = await Promise.all(opened)
    const kept = await keepsSessions(sessions)
    if (kept === undefined)
      return { level: 'warn', detail: 'It does not tell which session serves a connection' }
    return kept ? fine('A connection has one session, from first to last') : wrong(lostSessions)
  },
}

const areValues = listOf(members<{ value: string }>({ value: isText }))

/** One text that a server is asked for. @returns undefined where it does not know what that is */
async function textOf(session: Session, query: string): Promise<string | undefined> {
  try {
    const rows = await session.rows(query)
    if (!areValues(rows)) throw new Error('Expected the server to answer with a text')
    return rows[0]?.value
  } catch (error) {
    if (error instanceof DatabaseError) return undefined
    throw error
  }
}

function settingOf(session: Session, name: string): Promise<string | undefined> {
  return textOf(session, `SELECT current_setting('${name}') AS value`)
}
