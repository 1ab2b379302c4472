import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { logFolder } from '../../../src/store-files/log-folder.js'
import { openEnvironment } from '../environment.js'
import { isOfCluster } from '../replica/cluster-reader.js'
import { FileLog } from './file-log.js'
import { readPosition } from './position.js'

/**
 * Walks through the log of a store that nobody has open, and changes nothing.
 * @returns how many segments the next start will bring into the store; undefined for one whose log is that of a cluster
 * @throws Error when the log is damaged
 */
export async function segmentsAhead(path: string): Promise<number | undefined> {
  const environment = openEnvironment(path, 'read')
  try {
    const position = readPosition(environment)
    const directory = join(path, logFolder)
    // A store of an earlier version, or one whose first start was cut off: nothing was ever appended.
    if (position === undefined) return 0
    if (isOfCluster(position)) return undefined
    if (!existsSync(directory)) throw new Error(`The folder ${directory} is missing`)
    const log = FileLog.open(directory, position, 'read')
    try {
      return [...log.read()].length
    } finally {
      await log.close()
    }
  } finally {
    await environment.root.close()
  }
}
