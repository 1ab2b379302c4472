import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Takes a sample of a server's process (Linux).
 * @param {{pid: number, dataDir: string, secs: number, records: number}} about `secs` since the load began; `records`
 *   written by then
 * @returns {import('./judge.mjs').Sample}
 */
export function takeSample({ pid, dataDir, secs, records }) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const valueOf = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  const stores = readdirSync(dataDir).filter((name) => /^shard-\d+$/.test(name))
  return {
    secs,
    // Pages of mapped files are the system's to take back.
    memoryBytes: valueOf('RssAnon') * 1024,
    threads: valueOf('Threads'),
    handles: readdirSync(`/proc/${pid}/fd`).length,
    fileBytes: stores.reduce((sum, name) => sum + statSync(join(dataDir, name, 'data.mdb')).size, 0),
    records,
  }
}
