import { openEnvironment } from '../environment.js'
import { Preallocation } from '../preallocation.js'
import { Memtable } from './memtable.js'
import { ShardLog } from './shard-log.js'

/**
 * Brings a store up to its log, as a start of the server does, where one was killed. For whoever reads the store
 * without a shard; nobody may have it open.
 * @throws Error when the log is damaged, or the disk is full
 */
export async function recover(path: string): Promise<void> {
  const memtable = new Memtable()
  const environment = openEnvironment(path, 'write', memtable)
  const room = new Preallocation(path, environment)
  try {
    await new ShardLog({ path, environment, memtable, room }).close()
  } finally {
    room.close()
    await environment.root.close()
  }
}
