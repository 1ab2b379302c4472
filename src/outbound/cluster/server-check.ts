import { limits } from '../../base/limits.js'
import { isText, listOf, members } from '../../base/shape.js'
import { Session } from './session.js'
import { UnfitServer } from './trouble.js'

/** What a database server is to a cluster. */
export interface ServerFacts {
  /** As a person reads it: 15.6. */
  version: string
  /** Settings with which it loses what it has acknowledged: one sentence each. */
  faults: string[]
  /** Whether a commit waits for a standby. */
  replicated: boolean
}

const VERSION_MIN = 150_000

const names = [
  'server_version',
  'server_version_num',
  'fsync',
  'full_page_writes',
  'synchronous_standby_names',
]

/** Looks whether a server keeps what it acknowledges. */
export async function examineServer(session: Session): Promise<ServerFacts> {
  const list = names.map((name) => `'${name}'`).join(', ')
  const rows: unknown = await session.rows(`SELECT name, setting FROM pg_settings WHERE name IN (${list})`)
  if (!areSettings(rows)) throw new Error('Expected the server to tell its settings')
  const settings = new Map(rows.map(({ name, setting }) => [name, setting]))
  const version = settings.get('server_version') ?? 'unknown'
  const faults: string[] = []
  if (Number(settings.get('server_version_num') ?? VERSION_MIN) < VERSION_MIN)
    faults.push(`it is PostgreSQL ${version}: expected 15 or newer`)
  for (const name of ['fsync', 'full_page_writes'])
    if (settings.get(name) === 'off')
      faults.push(`it runs with ${name} = off, and would lose what it has acknowledged: switch it on`)
  return { version, faults, replicated: (settings.get('synchronous_standby_names') ?? '') !== '' }
}

/**
 * Connects to the server that takes writes, if it keeps what it acknowledges: one that was promoted may have other settings.
 * @throws UnfitServer where it would lose something, or is too old; Error where none is reached
 */
export async function openLasting(
  urls: readonly string[],
): Promise<{ session: Session; server: ServerFacts }> {
  const session = await Session.open(urls)
  const timer = setTimeout(() => session.drop(), limits.clusterConnectMs)
  try {
    const server = await examineServer(session)
    const [fault] = server.faults
    if (fault !== undefined) throw new UnfitServer(fault)
    return { session, server }
  } catch (error) {
    session.drop()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

const areSettings = listOf(members<{ name: string; setting: string }>({ name: isText, setting: isText }))
