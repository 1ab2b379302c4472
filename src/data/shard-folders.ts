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
 * The folders of a data directory's shards, and how a reshard replaces them (docs/adr/0021-resharding.md).
 * New shards are built in a separate folder. One durable write of format.json activates them: before it, the
 * next process that opens the directory discards the new shards; after it, that process moves them into
 * place.
 */

/** The folder in which new shards are built. */
const BUILD = 'reshard'

const DATA_FILE = 'data.mdb'

const folderPattern = /^shard-(\d+)$/

export function shardFolder(path: string, shard: number): string {
  return join(path, `shard-${shard}`)
}

/** Bytes of the stores on disk; a shard that was never opened has none. */
export function shardBytes(path: string, shards: number): number {
  let bytes = 0
  for (let shard = 0; shard < shards; shard++) {
    bytes += statSync(join(shardFolder(path, shard), DATA_FILE), { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}

/** Creates an empty folder for new shards. */
export function beginBuild(path: string): string {
  const build = join(path, BUILD)
  rmSync(build, { recursive: true, force: true })
  mkdirSync(build, { mode: 0o700 })
  return build
}

/** Discards new shards that are not active. */
export function dropBuild(path: string): void {
  rmSync(join(path, BUILD), { recursive: true, force: true })
}

/** Activates new, closed shards. Whenever the machine stops, either the old or the new ones are complete. */
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
 * Completes an interrupted reshard if its shards are active, otherwise undoes it.
 * @returns the resulting format
 */
export function recoverFolders(path: string, format: Format): Format {
  if (format.switching) return completeSwitch(path, format)
  if (existsSync(join(path, BUILD))) dropBuild(path)
  return format
}

/** Each step can be repeated: moved shards are no longer in the build folder. */
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
  const completed = { ...format, switching: false }
  writeFormat(path, completed)
  return completed
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
