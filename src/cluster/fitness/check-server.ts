import { DatabaseError } from 'pg'
import { limits } from '../../base/limits/limits.js'
import { isText, listOf, members } from '../../base/shape.js'
import { type DatabaseCheck, pass, type CheckResult, fail } from './check-bench.js'
import {
  durabilitySettings,
  ENCODING,
  encodingFault,
  keepsSessions,
  lostSessions,
  VERSION_MIN,
} from '../database/server-check.js'
import { Session } from '../database/session.js'
import { clusterTables } from '../database/statements.js'
import { examineTables } from '../database/tables.js'

/* Checks of the servers, and whether they keep what they acknowledge. */

export const serversCheck: DatabaseCheck = {
  subject: 'servers',
  async run({ urls }) {
    const found = await Promise.all(urls.map(roleOf))
    const writing = found.filter(({ role }) => role === WRITABLE)
    const list = found.map(({ host, role }) => `${host} ${role}`).join('; ')
    const [first] = writing
    if (first === undefined) return fail(list)
    if (writing.length > 1)
      return fail(
        `${list}: expected exactly one server that accepts writes; these may belong to different databases`,
      )
    const isAway = found.some(({ role }) => role !== WRITABLE && role !== READ_ONLY)
    return { level: isAway ? 'warn' : 'ok', detail: list }
  },
}

const WRITABLE = 'accepts writes'
const READ_ONLY = 'is read-only'

async function roleOf(url: string): Promise<{ host: string; role: string }> {
  const { host } = new URL(url)
  try {
    const session = await Session.open([url])
    await session.close()
    return { host, role: WRITABLE }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { host, role: text.includes(READ_ONLY) ? READ_ONLY : `cannot be used (${text})` }
  }
}

export const versionCheck: DatabaseCheck = {
  subject: 'version',
  async run(bench) {
    const session = await bench.session()
    const [version, number] = [
      await textOf(session, 'SELECT version() AS value'),
      await settingOf(session, 'server_version_num'),
    ]
    const detail = version ?? 'The server does not report its version'
    if (number !== undefined && Number(number) < VERSION_MIN)
      return fail(`${detail}: expected PostgreSQL 15 or newer`)
    if (version?.startsWith('PostgreSQL') === true && !/yugabyte|-YB-/i.test(version)) return pass(detail)
    return { level: 'warn', detail: `${detail}: Strandfast is tested with PostgreSQL` }
  },
}

/** The encoding stores every text, and converts none. */
export const encodingCheck: DatabaseCheck = {
  subject: 'encoding',
  async run(bench) {
    const { settings } = await bench.session()
    const encoding = settings.get('server_encoding')
    return encoding === ENCODING ? pass(ENCODING) : fail(encodingFault(encoding))
  },
}

/**
 * New tables are as they were created, and so are those of the cluster that the database holds, if it holds
 * one.
 */
export const tablesCheck: DatabaseCheck = {
  subject: 'schema',
  async run(bench) {
    const session = await bench.session()
    const created = await examineTables(session, bench.prefix)
    const { missing, wrong } = await examineTables(session, clusterTables)
    const hasCluster = missing.length < bench.statements.tables.length
    const faults = [...created.missing, ...created.wrong, ...(hasCluster ? missing : []), ...wrong]
    if (faults.length > 0) return fail(faults.join('; '))
    return pass(
      `Tables have the columns, keys and constraints with which they were created${hasCluster ? ', those of the cluster too' : ''}`,
    )
  },
}

/** Settings without which a crash loses acknowledged writes. */
export const settingsCheck: DatabaseCheck = {
  subject: 'disk',
  async run(bench) {
    const session = await bench.session()
    const off: string[] = []
    const unknown: string[] = []
    for (const name of durabilitySettings) {
      const value = await settingOf(session, name)
      if (value === undefined) unknown.push(name)
      if (value === 'off') off.push(name)
    }
    if (off.length > 0)
      return fail(`${off.join(' and ')} = off: acknowledged writes would be lost, so switch it on`)
    if (unknown.length > 0)
      return { level: 'warn', detail: `The server does not report ${unknown.join(' and ')}` }
    return pass(`${durabilitySettings.join(' and ')} are on`)
  },
}

/** Whether a commit waits for a standby, and how many standbys are connected. */
export const standbysCheck: DatabaseCheck = {
  subject: 'standbys',
  async run(bench): Promise<CheckResult> {
    const session = await bench.session()
    const [names, waits] = [
      await settingOf(session, 'synchronous_standby_names'),
      await settingOf(session, 'synchronous_commit'),
    ]
    if (names === undefined)
      return {
        level: 'warn',
        detail: 'The server does not report synchronous_standby_names: check its replication yourself',
      }
    if (names === '')
      return {
        level: 'warn',
        detail:
          "Commits do not wait for a standby: acknowledged writes are lost with this server. Set synchronous_standby_names = 'ANY 1 (…)', with two standbys",
      }
    const counting =
      "SELECT count(*)::text AS value FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
    const count = Number((await textOf(session, counting)) ?? 0)
    const detail = `${names}, ${count} of them connected; synchronous_commit = ${waits ?? 'unknown'}`
    if (count >= 2) return pass(detail)
    return {
      level: 'warn',
      detail: `${detail}: with fewer than 2, every commit waits as soon as one standby is down`,
    }
  },
}

/** A connection keeps one session: a pooler may switch sessions with each transaction. */
export const sessionsCheck: DatabaseCheck = {
  subject: 'sessions',
  async run(bench) {
    const opened = Array.from({ length: limits.clusterCheckConnections }, () => bench.session())
    const sessions = await Promise.all(opened)
    const kept = await keepsSessions(sessions)
    if (kept === undefined)
      return { level: 'warn', detail: 'The server does not report which session serves a connection' }
    return kept ? pass('Each connection keeps one session') : fail(lostSessions)
  },
}

const areValues = listOf(members<{ value: string }>({ value: isText }))

/** Queries one text. @returns undefined if the server does not support the query */
async function textOf(session: Session, query: string): Promise<string | undefined> {
  try {
    const rows = await session.rows(query)
    if (!areValues(rows)) throw new Error('Malformed text row')
    return rows[0]?.value
  } catch (error) {
    if (error instanceof DatabaseError) return undefined
    throw error
  }
}

function settingOf(session: Session, name: string): Promise<string | undefined> {
  return textOf(session, `SELECT current_setting('${name}') AS value`)
}
