import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Takes a sample of a server's process (Linux).
 * @param {{pid: number, dataDir: string, secs: number, records: number}} about `secs` since the start of the
 * load; `records` written so far
 * @returns {import('./judge.mjs').Sample}
 */
export function takeSample({ pid, dataDir, secs, records }) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const valueOf = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  const stores = readdirSync(dataDir).filter((name) => /^shard-\d+$/.test(name))
  return {
    secs,
    // Without pages of mapped files, which the kernel can drop.
    memoryBytes: valueOf('RssAnon') * 1024,
    threads: valueOf('Threads'),
    handles: readdirSync(`/proc/${pid}/fd`).length,
    fileBytes: stores.reduce((sum, name) => sum + usedBytes(join(dataDir, name, 'data.mdb')), 0),
    logBytes: stores.reduce((sum, name) => sum + bytesIn(join(dataDir, name, 'log')), 0),
    records,
  }
}

function bytesIn(folder) {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

const PAGE_BYTES = 4_096

/**
 * Bytes up to the last page in use. Beyond it, a data file has free space, which is allocated in large
 * pieces.
 */
function usedBytes(path) {
  const metas = Buffer.alloc(2 * PAGE_BYTES)
  const fd = openSync(path, 'r')
  readSync(fd, metas, 0, metas.length, 0)
  closeSync(fd)
  // The meta page of the later transaction is valid (src/store-files/lmdb-file.ts).
  const [even, odd] = [0, PAGE_BYTES].map((at) => ({
    lastPage: Number(metas.readBigUInt64LE(at + 144)),
    transaction: metas.readBigUInt64LE(at + 152),
  }))
  return ((odd.transaction > even.transaction ? odd : even).lastPage + 1) * PAGE_BYTES
}
