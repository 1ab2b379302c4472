import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { syncDirectory } from '../base/durable-file.js'
import { type Format, writeFormat } from './format.js'
import { removeStore } from './log-folders.js'

/*
 * Where the shards of a data directory are, and how another number of shards replaces them
 * (docs/adr/0021-resharding.md). New shards are built in a folder of their own. One durable write of format.json puts
 * them in force: before it, the next process that opens the directory discards the new shards; after it, that process
 * moves them into place.
 */

/** The folder in which new shards are built. */
const BUILD = 'reshard'

/** The data file in a shard's folder. */
const DATA_FILE = 'data.mdb'

const folderPattern = /^shard-(\d+)$/

/** The folder of one shard. */
export function shardFolder(path: string, shard: number): string {
  return join(path, `shard-${shard}`)
}

/** Bytes that the shards of a data directory take on disk; a shard that was never opened takes none. */
export function shardBytes(path: string, shards: number): number {
  let bytes = 0
  for (let shard = 0; shard < shards; shard++) {
    bytes += statSync(join(shardFolder(path, shard), DATA_FILE), { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}

/** Makes the folder in which new shards are built, empty. */
export function beginBuild(path: string): string {
  const build = join(path, BUILD)
  rmSync(build, { recursive: true, force: true })
  mkdirSync(build, { mode: 0o700 })
  return build
}

/** Discards new shards that are not in force. */
export function dropBuild(path: string): void {
  rmSync(join(path, BUILD), { recursive: true, force: true })
}

/** Puts new, closed shards in force. Whenever the machine stops, either the old ones or the new ones are complete. */
export function switchOver(path: string, format: Format, shards: number): void {
  const build = join(path, BUILD)
  for (let shard = 0; shard < shards; shard++) {
    syncFile(join(shardFolder(build, shard), DATA_FILE))
    syncDirectory(shardFolder(build, shard))
  }
  syncDirectory(build)
  syncDirectory(path)
  const switching = { ...format, shards, layout: format.layout + 1, switching: true }
  writeFormat(path, switching)
  completeSwitch(path, switching)
}

/**
 * Completes an interrupted reshard if its shards are in force, otherwise undoes it.
 * @returns the format as it is then
 */
export function settleFolders(path: string, format: Format): Format {
  if (format.switching) return completeSwitch(path, format)
  if (existsSync(join(path, BUILD))) dropBuild(path)
  return format
}

/** Each step can be repeated: shards that were moved are not in the build folder any more. */
function completeSwitch(path: string, format: Format): Format {
  const build = join(path, BUILD)
  for (let shard = 0; shard < format.shards; shard++) {
    const built = shardFolder(build, shard)
    if (!existsSync(built)) continue
    removeStore(shardFolder(path, shard))
    // The removal must be on disk before the new shard gets the name.
    syncDirectory(path)
    renameSync(built, shardFolder(path, shard))
  }
  for (const name of readdirSync(path)) {
    const shard = Number(folderPattern.exec(name)?.[1] ?? -1)
    if (shard >= format.shards) removeStore(join(path, name))
  }
  rmSync(build, { recursive: true, force: true })
  syncDirectory(path)
  const settled = { ...format, switching: false }
  writeFormat(path, settled)
  return settled
}

function syncFile(file: string): void {
  // Windows syncs only files that are open for writing.
  const fd = openSync(file, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
