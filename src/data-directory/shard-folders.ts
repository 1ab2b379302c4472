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

/*
 * Where the shards of a data directory lie, and how another number of them takes their place (docs/adr/0021-resharding.md).
 * New shards are built in a folder of their own. One durable write of format.json puts them in force: before it, what
 * was built is thrown away by whoever opens the directory next; after it, he puts it in its place.
 */

/** The folder in which new shards are built. */
const BUILD = 'reshard'

/** The file in a shard's folder that holds its data. */
const DATA_FILE = 'data.mdb'

const folderPattern = /^shard-(\d+)$/

/** The folder of one shard. */
export function shardFolder(path: string, shard: number): string {
  return join(path, `shard-${shard}`)
}

/** Bytes that the shards of a data directory take on disk; one that was never opened takes none. */
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

/** Throws away what was built and is not in force. */
export function dropBuild(path: string): void {
  rmSync(join(path, BUILD), { recursive: true, force: true })
}

/** Puts shards that were built, and are closed, in force, whenever the machine stops: the old ones before, these after. */
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
 * Ends what a reshard left behind that was cut off: completes it where its shards are in force, undoes it where not.
 * @returns the format as it is then
 */
export function settleFolders(path: string, format: Format): Format {
  if (format.switching) return completeSwitch(path, format)
  if (existsSync(join(path, BUILD))) dropBuild(path)
  return format
}

/** Each step can be done again: what is moved already is in the build folder no more. */
function completeSwitch(path: string, format: Format): Format {
  const build = join(path, BUILD)
  for (let shard = 0; shard < format.shards; shard++) {
    const built = shardFolder(build, shard)
    if (!existsSync(built)) continue
    rmSync(shardFolder(path, shard), { recursive: true, force: true })
    // On disk before the new one takes the name.
    syncDirectory(path)
    renameSync(built, shardFolder(path, shard))
  }
  for (const name of readdirSync(path)) {
    const shard = Number(folderPattern.exec(name)?.[1] ?? -1)
    if (shard >= format.shards) rmSync(join(path, name), { recursive: true, force: true })
  }
  rmSync(build, { recursive: true, force: true })
  syncDirectory(path)
  const settled = { ...format, switching: false }
  writeFormat(path, settled)
  return settled
}

function syncFile(file: string): void {
  // Windows syncs only what is open for writing.
  const fd = openSync(file, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
