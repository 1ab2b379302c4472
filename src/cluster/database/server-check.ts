import { DatabaseError } from 'pg'
import { limits } from '../../base/limits/limits.js'
import { fields, isText, listOf } from '../../base/shape.js'
import { lateCommitModes, Session, withinConnectTime } from './session.js'
import { UnfitServer } from './database-errors.js'

/** Properties of a database server that matter to a cluster. */
export interface ServerFacts {
  /** For people: 15.6. */
  version: string
  /** Settings with which the server loses acknowledged writes: one sentence each. */
  faults: string[]
  /** Whether a commit waits for a standby. */
  replicated: boolean
}

/** The oldest version of PostgreSQL, as `server_version_num`. */
export const VERSION_MIN = 150_000
/** Settings that must be on: without them, a crash loses acknowledged writes. */
export const durabilitySettings = ['fsync', 'full_page_writes'] as const
/** The only encoding that stores every text, and converts none. */
export const ENCODING = 'UTF8'

/** Checks whether a server keeps what it acknowledges. */
export function examineServer({ settings }: Session): ServerFacts {
  const version = settings.get('server_version') ?? 'unknown'
  const faults: string[] = []
  if (Number(settings.get('server_version_num') ?? VERSION_MIN) < VERSION_MIN)
    faults.push(`it is PostgreSQL ${version}: expected 15 or newer`)
  const encoding = settings.get('server_encoding')
  if (encoding !== ENCODING) faults.push(encodingFault(encoding))
  for (const name of durabilitySettings)
    if (settings.get(name) === 'off')
      faults.push(`it runs with ${name} = off, and would lose acknowledged writes: switch it on`)
  const commitMode = settings.get('synchronous_commit') ?? ''
  if (commitMode !== '' && !lateCommitModes.includes(commitMode))
    faults.push(
      `it keeps synchronous_commit = ${commitMode}, and would lose acknowledged writes: allow the role to set it`,
    )
  return { version, faults, replicated: (settings.get('synchronous_standby_names') ?? '') !== '' }
}

/** The fault of a database with another encoding. */
export function encodingFault(encoding: string | undefined): string {
  return `the encoding of the database is ${encoding ?? 'unknown'}, which cannot store every text: create a database with ENCODING '${ENCODING}', and move a cluster there with cluster pull and cluster push`
}

/**
 * Connects to the server that accepts writes, if it keeps what it acknowledges. A promoted standby may have
 * other settings.
 * @param examine further checks of the session
 * @throws UnfitServer if the server could lose acknowledged writes or is too old; Error if no server can be
 * reached
 */
export async function openDurable(
  urls: readonly string[],
  examine?: (session: Session) => Promise<void>,
): Promise<{ session: Session; server: ServerFacts }> {
  const session = await Session.open(urls)
  const work = async () => {
    const server = examineServer(session)
    if (server.faults.length > 0) throw new UnfitServer(server.faults.join('; '))
    await examine?.(session)
    return { session, server }
  }
  return withinConnectTime(() => session.drop(), work)
}

/** The fault of connections that do not keep their sessions. */
export const lostSessions =
  'One connection was served by several sessions, or one session serves several connections, so settings get lost: connect nodes directly, or through a pooler in session mode'

/**
 * The session of a connection: process id and start time, since another server may use the same process id.
 */
const sessionQuery = `SELECT pg_backend_pid()::text || coalesce(
  (SELECT ' ' || backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()), '') AS value`
const SESSION_ROUNDS = 5

/**
 * Whether each of several connections keeps one session: a pooler may switch sessions with each transaction.
 * @returns undefined if the engine does not say which session serves a connection
 */
export async function keepsSessions(sessions: readonly Session[]): Promise<boolean | undefined> {
  const seen = sessions.map(() => new Set<string>())
  for (let round = 0; round < SESSION_ROUNDS; round++) {
    const found = await Promise.all(sessions.map(sessionOf))
    for (const [nth, one] of found.entries()) {
      if (one === undefined) return undefined
      seen[nth]?.add(one)
    }
  }
  return (
    new Set(seen.flatMap((own) => [...own])).size === sessions.length && seen.every(({ size }) => size === 1)
  )
}

async function sessionOf(session: Session): Promise<string | undefined> {
  try {
    const rows: unknown = await session.rows(sessionQuery)
    return areValues(rows) ? rows[0]?.value : undefined
  } catch (error) {
    if (error instanceof DatabaseError) return undefined
    throw error
  }
}

/**
 * Checks that connections keep their sessions.
 * @throws UnfitServer if they do not; Error if no server can be reached
 */
export async function examineSessions(urls: readonly string[]): Promise<void> {
  const sessions: Session[] = []
  const drop = () => {
    for (const session of sessions) session.drop()
  }
  try {
    const opening = Array.from({ length: limits.clusterPoolerProbes }, () => Session.open(urls))
    const opened = await Promise.allSettled(opening)
    for (const one of opened) if (one.status === 'fulfilled') sessions.push(one.value)
    for (const one of opened) if (one.status === 'rejected') throw one.reason
    const kept = await withinConnectTime(drop, () => keepsSessions(sessions))
    if (kept === false) throw new UnfitServer(lostSessions)
  } finally {
    drop()
  }
}

const areValues = listOf(fields({ value: isText }))
