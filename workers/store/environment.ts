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
import { open, type Database, type RootDatabase } from 'lmdb'
import { assert } from '../../src/base/assert.js'
import { beginningFault } from '../../src/store-files/lmdb-file.js'
import { syncDirectory } from '../../src/base/durable-file.js'
import { logFolder } from '../../src/store-files/log-folder.js'
import { fileName, isTableOfFile, storeTables } from '../../src/store-files/store-tables.js'
import { CheckedTable, type Table } from './tables/checked-table.js'
import type { Memtable } from './log/memtable.js'
import { bodied, local, tableIds } from './log/table-ids.js'
import { StrandRuns } from './tables/strand-runs.js'

/** The suffix of an environment that is still being made (src/data/directory.ts). */
const unfinishedSuffix = '.tmp'

/** One shard's LMDB environment. The tables' keys are laid out in tables.ts. */
export interface Environment {
  root: RootDatabase<Buffer, Buffer>
  /** agent name → agent row. */
  agents: CheckedTable
  /** agent number → agent name. */
  names: CheckedTable
  /** block number → block. */
  blocks: Table
  /** block number, from `importedBlocksFrom` on → block of imported records. */
  importedBlocks: Table
  /** agent number, first seq → where these records are; read and written by `runs` only. */
  strands: CheckedTable
  /** What is known of the other tables. */
  meta: CheckedTable
  /** Where the records of each strand lie. */
  runs: StrandRuns
  /** runs of the hash index. */
  hashes: Database<Buffer, Buffer>
  /** agent number, seq of a record, seq of the mutation → what it did. */
  mutations: CheckedTable
  /** agent number, seq → body commitment of an erased record. */
  erasures: CheckedTable
  /** Rows that overwrite pages which held erased bodies. */
  filling: Database<Buffer, Buffer>
  /** agent number, seq → proposal. */
  proposals: CheckedTable
  /** agent number, seq of an open proposal → nothing. */
  proposalsOpen: CheckedTable
  /** agent number, target of an open proposal → its seq. */
  proposalTargets: CheckedTable
  /** due time, agent number, seq of an open proposal → nothing. */
  proposalDues: CheckedTable
  /** agent number, seq of a `sys/zone` record → the zone from there on. */
  zoneChanges: CheckedTable
  /** agent number of the source, type, destination → how the edge stands. */
  edges: CheckedTable
  /** destination, type, source → the same. */
  edgesIn: CheckedTable
  /** key in `edges`, clock → how the edge stood before it changed. */
  edgeHistory: CheckedTable
  /** seq of a record of the server log, position in it → the head that it names there. */
  toldHeads: CheckedTable
  /** runs of the hash index from a strand to its rows in `toldHeads`. */
  toldStrands: Database<Buffer, Buffer>
  /** caller and idempotency key → answer. */
  idempotency: CheckedTable
  /** expiry, idempotency key → nothing. */
  expiries: CheckedTable
  /** public key → agent name. */
  publicKeys: CheckedTable
  /** key id → scoped API key. */
  apiKeys: CheckedTable
  /** organism id → organism. */
  organisms: CheckedTable
  /** namespace, kind, id → a row of auth state. */
  auth: CheckedTable
  /** expiry, key of a row of auth state → nothing. */
  authExpiries: CheckedTable
  /** expiry, namespace, id → a session, token or user that has ended. */
  authEnded: CheckedTable
  /** due time, id → a mail to be sent. */
  mails: CheckedTable
}

/**
 * Opens the environment of one shard; for writing, it is made if it does not exist.
 *
 * `overlappingSync: false` makes a commit answer after its fsync, not before (docs/adr/0004-durable-commits.md).
 * @param memtable is put in front of the tables that are in the log
 * @throws Error when the data file is damaged so that LMDB could not read it safely
 */
export function openEnvironment(path: string, access: 'write' | 'read', memtable?: Memtable): Environment {
  if (access === 'write') {
    if (existsSync(path)) refuseDamaged(path)
    else makeDurably(path)
  }
  return openTables(path, access, memtable)
}

/** LMDB would crash the process on a truncated file, and make a new file in place of a missing one. */
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
 * Makes an environment beside its place and moves it there when it is complete and on disk. LMDB never syncs a
 * directory, and writes its first two pages without syncing them: a loss of power could leave a file with only a part
 * of these pages, or no file although commits were answered.
 */
function makeDurably(path: string): void {
  const unfinished = `${path}${unfinishedSuffix}`
  mkdirSync(unfinished, { recursive: true, mode: 0o700 })
  // The directory itself stays: it shows that the store was never made, and is not missing
  // (src/data/directory.ts). And the link to the folder of its log, if that is elsewhere.
  for (const name of readdirSync(unfinished)) if (name !== logFolder) rmSync(join(unfinished, name))
  const { root } = openTables(unfinished, 'write')
  // Nothing is pending in it, so it is closed when this returns.
  void root.close()
  syncDirectory(unfinished)
  renameSync(unfinished, path)
  syncDirectory(dirname(path))
}

/** Files that LMDB opens for an environment. */
const FILES_OPENED = 4

/**
 * Opens the data file as often as LMDB opens files, all at once, and closes them again: if LMDB cannot open one, lmdb
 * 3.5.6 uses a lock in memory that it has freed (docs/upstream/lmdb-failed-open.md). The lock file is not opened,
 * because closing it would give up the locks that this process holds by it (fcntl).
 * @throws Error the error of the file system
 */
function tryToOpen(path: string, access: 'write' | 'read'): void {
  const data = join(path, 'data.mdb')
  const lock = join(path, 'lock.mdb')
  if (existsSync(lock)) accessSync(lock, constants.R_OK | constants.W_OK)
  else accessSync(path, constants.W_OK)
  // Where there is no data file yet, it is the directory that has to open.
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
    // It is a directory, whatever the end of its name.
    noSubdir: false,
    encoding: 'binary',
    keyEncoding: 'binary',
    overlappingSync: false,
    maxDbs: 48,
    maxReaders: 126,
    cache: false,
    // Unused parts of new pages are zeros, not what the memory held before, such as an erased body.
    noMemInit: false,
    readOnly: access === 'read',
  })
  refuseUnknown(path, root)
  if (access === 'read') return tablesOf(root, memtable)
  let environment: Environment | undefined
  // One transaction: a first start syncs once, and makes all tables or none.
  root.transactionSync(() => {
    environment = tablesOf(root, memtable)
  })
  assert(environment !== undefined, 'a transaction runs its body')
  return environment
}

/** Whoever opened the tables would make an empty one in the place of one whose name is damaged. */
function refuseUnknown(path: string, root: RootDatabase<Buffer, Buffer>): void {
  // Names end in a NUL.
  const names = Array.from(root.getKeys(), (key) => key.toString().replace('\0', ''))
  const unknown = names.find((name) => !isTableOfFile(name))
  if (unknown === undefined) return
  void root.close()
  throw new Error(
    `The store ${path} has a table "${unknown}" that this version does not know: it is damaged (restore it from a backup), or a later version has made it`,
  )
}

function tablesOf(root: RootDatabase<Buffer, Buffer>, memtable: Memtable | undefined): Environment {
  const tables = Object.fromEntries(
    storeTables.map((name) => {
      const options = {
        name: fileName(name),
        encoding: 'binary',
        keyEncoding: 'binary',
        cache: false,
      } as const
      const table = root.openDB<Buffer, Buffer>(options)
      const id = tableIds[name]
      if (id === local) return [name, table]
      const logged = memtable?.over(table, id) ?? table
      return [name, bodied.has(id) ? logged : new CheckedTable(logged)]
    }),
  ) as unknown as Omit<Environment, 'root' | 'runs'>
  return { root, ...tables, runs: new StrandRuns(tables) }
}

/** How many rows a table has. */
export function rowCount(table: CheckedTable | Table): number {
  const { entryCount } = table.getStats() as { entryCount: number }
  return entryCount
}

/**
 * Runs `body` as one transaction and returns when it is on disk. A body that returns a promise would defer the commit
 * and lose it in a crash, so it is refused.
 * @throws whatever `body` throws, with nothing written; any other failure means that the outcome is unknown
 */
export function commitDurably(environment: Environment, body: () => void): void {
  usedUpTo.delete(environment)
  environment.root.transactionSync(() => {
    const result: unknown = body()
    assert(result === undefined, 'the body of a transaction is synchronous')
  })
}

/** The results of `usedBytes` since the last transaction: asking LMDB takes a twentieth of a lone write. */
const usedUpTo = new WeakMap<Environment, number>()

/** Bytes of the data file up to the end of its last page that is used. */
export function usedBytes(environment: Environment): number {
  let bytes = usedUpTo.get(environment)
  if (bytes === undefined) {
    const { lastPageNumber, pageSize } = environment.root.getStats() as {
      lastPageNumber: number
      pageSize: number
    }
    bytes = (lastPageNumber + 1) * pageSize
    usedUpTo.set(environment, bytes)
  }
  return bytes
}
