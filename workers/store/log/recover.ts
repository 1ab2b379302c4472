import { commitDurably, openEnvironment } from '../environment.js'
import { Preallocation } from '../preallocation.js'
import { indexStore } from '../tables/store-indexes.js'
import { Memtable } from './memtable.js'
import { type OpenLog, ShardLog } from './shard-log.js'

/**
 * Brings a store up to its log, as a start of the server does, where one was killed. For whoever reads the store
 * without a shard; nobody may have it open.
 * @param openLog where its log lies; in files beside it when absent
 * @throws Error when the log is damaged, or the disk is full
 */
export async function recover(path: string, openLog?: OpenLog): Promise<void> {
  const memtable = new Memtable()
  const environment = openEnvironment(path, 'write', memtable)
  const room = new Preallocation(path, environment)
  try {
    const log = new ShardLog({ path, environment, memtable, room, openLog })
    await log.close()
    // Of a log that is elsewhere there may be any number of segments, and a shard adds a bounded number to its indexes.
    if (openLog === undefined || log.replayed === 0) return
    log.flush(() => {})
    indexStore(environment, (body) => commitDurably(environment, () => memtable.move(body)))
  } finally {
    room.close()
    await environment.root.close()
  }
}
