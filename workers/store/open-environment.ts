import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { assert } from '../../src/base/assert.js'
import { beginningFault } from '../../src/store-files/lmdb-file.js'
import { syncDirectory } from '../../src/base/durable-file.js'
import { logFolder } from '../../src/store-files/log-folder.js'
import {
  blockTableIds,
  fileName,
  isTableOfFile,
  local,
  storeTables,
  tableIds,
} from '../../src/store-files/store-tables.js'
import type { Environment, Tables } from './environment.js'
import type { Memtable } from './log/memtable.js'
import { CheckedTable, type Table } from './tables/checked-table.js'
import { recordHashes } from './tables/records.js'
import { StrandRuns } from './tables/strand-runs.js'
import { StrandTrees } from './tables/strand-trees.js'

/** The suffix of an environment that is not complete yet (src/data/directory.ts). */
const unfinishedSuffix = '.tmp'

/**
 * Opens the environment of one shard. With write access, an environment that does not exist is created.
 *
 * With `overlappingSync: false` a commit returns after its fsync, not before
 * (docs/adr/0004-durable-commits.md).
 * @param memtable is put in front of the logged tables
 * @throws Error if the data file is so damaged that LMDB cannot read it safely
 */
export function openEnvironment(path: string, access: 'write' | 'read', memtable?: Memtable): Environment {
  if (access === 'write') {
    if (existsSync(path)) refuseDamaged(path)
    else createDurably(path)
  }
  return openTables(path, access, memtable)
}

/** LMDB would crash the process on a truncated file, and create a new file instead of a missing one. */
function refuseDamaged(path: string): void {
  const data = join(path, 'data.mdb')
  const fault = existsSync(data)
    ? beginningFault(data)
    : existsSync(join(path, 'lock.mdb'))
      ? 'the file data.mdb is missing'
      : undefined
  if (fault !== undefined) throw new Error(`The store ${path} is damaged, restore it from a backup: ${fault}`)
}

/**
 * Creates an environment under a temporary name, and renames it when it is complete and on disk. LMDB never
 * syncs a directory or its first two pages: after a loss of power, pages or the whole file could be missing.
 */
function createDurably(path: string): void {
  const unfinished = `${path}${unfinishedSuffix}`
  mkdirSync(unfinished, { recursive: true, mode: 0o700 })
  // The directory stays: it shows that the store was never created, and is not missing
  // (src/data/directory.ts). The link to the log folder stays too, if the log is in another directory.
  for (const name of readdirSync(unfinished)) if (name !== logFolder) rmSync(join(unfinished, name))
  const { root } = openTables(unfinished, 'write')
  // Nothing is pending, so the environment is closed when `close` returns.
  void root.close()
  syncDirectory(unfinished)
  renameSync(unfinished, path)
  syncDirectory(dirname(path))
}

const FILES_OPENED = 4

/**
 * Opens as many file descriptors as LMDB will need, and closes them again: if LMDB cannot open a file, lmdb
 * 3.5.6 uses a lock in freed memory (docs/upstream/lmdb-failed-open.md). The lock file is not opened, because
 * closing it would release the fcntl locks of this process.
 * @throws Error of the file system
 */
function tryToOpen(path: string, access: 'write' | 'read'): void {
  const data = join(path, 'data.mdb')
  const lock = join(path, 'lock.mdb')
  if (existsSync(lock)) accessSync(lock, constants.R_OK | constants.W_OK)
  else accessSync(path, constants.W_OK)
  // Without a data file, try the directory instead.
  const [file, flags] = existsSync(data) ? [data, access === 'write' ? 'r+' : 'r'] : [path, 'r']
  const open: number[] = []
  try {
    for (let count = 0; count < FILES_OPENED; count++) open.push(openSync(file, flags))
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

function openTables(path: string, access: 'write' | 'read', memtable?: Memtable): Environment {
  tryToOpen(path, access)
  const root = open<Buffer, Buffer>({
    path,
    // The path is a directory, even if its name has an extension.
    noSubdir: false,
    encoding: 'binary',
    keyEncoding: 'binary',
    overlappingSync: false,
    maxDbs: 48,
    maxReaders: 126,
    cache: false,
    // Fill unused parts of new pages with zeros, because the memory may have held an erased body.
    noMemInit: false,
    readOnly: access === 'read',
  })
  const known = tableNames(path, root)
  if (access === 'read') return tablesOf(root, memtable, known)
  let environment: Environment | undefined
  // One transaction, so that a first start syncs once and creates all tables or none.
  root.transactionSync(() => {
    environment = tablesOf(root, memtable)
  })
  assert(environment !== undefined, 'a transaction runs its body')
  return environment
}

/**
 * The names of the tables in the file. Opening the tables would create an empty table instead of a table whose
 * name is damaged.
 * @throws Error for a name that this version does not know
 */
function tableNames(path: string, root: RootDatabase<Buffer, Buffer>): ReadonlySet<string> {
  // Names end in a NUL.
  const names = Array.from(root.getKeys(), (key) => key.toString().replace('\0', ''))
  const unknown = names.find((name) => !isTableOfFile(name))
  if (unknown === undefined) return new Set(names)
  void root.close()
  throw new Error(
    `The store ${path} has a table "${unknown}" that this version does not know: it is damaged (restore it from a backup), or a later version wrote it`,
  )
}

/** @param existing the tables of a file that is only read */
function tablesOf(
  root: RootDatabase<Buffer, Buffer>,
  memtable: Memtable | undefined,
  existing?: ReadonlySet<string>,
): Environment {
  const tables = Object.fromEntries(
    storeTables.map((name) => {
      const options = {
        name: fileName(name),
        encoding: 'binary',
        keyEncoding: 'binary',
        cache: false,
      } as const
      const id = tableIds[name]
      // An earlier version wrote the file: what it did not derive can be read from the records.
      if (id === local && existing?.has(options.name) === false) return [name, noRows]
      const table = root.openDB<Buffer, Buffer>(options)
      if (id === local) return [name, table]
      const logged = memtable?.wrap(table, id) ?? table
      return [name, blockTableIds.has(id) ? logged : new CheckedTable(logged)]
    }),
  ) as unknown as Tables
  const runs = new StrandRuns(tables)
  const trees = new StrandTrees(tables, (agentNo, range) => recordHashes({ ...tables, runs }, agentNo, range))
  return { root, ...tables, runs, trees }
}

const noRows: Pick<Table, 'get' | 'getRange' | 'getKeys'> = {
  get: () => undefined,
  getRange: () => [],
  getKeys: () => [],
}
