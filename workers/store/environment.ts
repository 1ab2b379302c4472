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
import { blockTableIds, local, tableIds } from './log/table-ids.js'
import { StrandRuns } from './tables/strand-runs.js'

/** The suffix of an environment that is not complete yet (src/data/directory.ts). */
const unfinishedSuffix = '.tmp'

/** One shard's LMDB environment. The formats of the keys are in tables.ts. */
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
  /** agent number, first seq → location of these records; only `runs` reads and writes it. */
  strands: CheckedTable
  /** Facts about the other tables and about the store. */
  meta: CheckedTable
  /** The locations of each strand's records. */
  runs: StrandRuns
  /** runs of the hash index. */
  hashes: Database<Buffer, Buffer>
  /**
   * agent number, seq of a record, seq of the mutation → 1 if the record was deleted, 0 if it was restored.
   */
  mutations: CheckedTable
  /** agent number, seq → body commitment of an erased record. */
  erasures: CheckedTable
  /** Temporary rows that overwrite free pages which held erased bodies. */
  filling: Database<Buffer, Buffer>
  /** agent number, seq → proposal. */
  proposals: CheckedTable
  /** agent number, seq of an open proposal → nothing. */
  proposalsOpen: CheckedTable
  /** agent number, target of an open proposal → its seq. */
  proposalTargets: CheckedTable
  /** due time, agent number, seq of an open proposal → nothing. */
  proposalDues: CheckedTable
  /** agent number, seq of a `sys/zone` record → the new zone. */
  zoneChanges: CheckedTable
  /** agent number of the source, type, destination → current state of the edge. */
  edges: CheckedTable
  /** destination, type, source → the same state. */
  edgesIn: CheckedTable
  /** key in `edges`, clock → state of the edge before a change. */
  edgeHistory: CheckedTable
  /** seq of a record of the server log, position in it → the logged head. */
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
  /** expiry, namespace, id → revocation of a session, token or user. */
  authEnded: CheckedTable
  /** due time, id → mail in the outbox. */
  mails: CheckedTable
}

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
  refuseUnknown(path, root)
  if (access === 'read') return tablesOf(root, memtable)
  let environment: Environment | undefined
  // One transaction, so that a first start syncs once and creates all tables or none.
  root.transactionSync(() => {
    environment = tablesOf(root, memtable)
  })
  assert(environment !== undefined, 'a transaction runs its body')
  return environment
}

/** Opening the tables would create an empty table instead of a table whose name is damaged. */
function refuseUnknown(path: string, root: RootDatabase<Buffer, Buffer>): void {
  // Names end in a NUL.
  const names = Array.from(root.getKeys(), (key) => key.toString().replace('\0', ''))
  const unknown = names.find((name) => !isTableOfFile(name))
  if (unknown === undefined) return
  void root.close()
  throw new Error(
    `The store ${path} has a table "${unknown}" that this version does not know: it is damaged (restore it from a backup), or a later version wrote it`,
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
      const logged = memtable?.wrap(table, id) ?? table
      return [name, blockTableIds.has(id) ? logged : new CheckedTable(logged)]
    }),
  ) as unknown as Omit<Environment, 'root' | 'runs'>
  return { root, ...tables, runs: new StrandRuns(tables) }
}

export function rowCount(table: CheckedTable | Table): number {
  const { entryCount } = table.getStats() as { entryCount: number }
  return entryCount
}

/**
 * Runs `body` as one transaction and returns when the transaction is on disk. A body that returns a promise
 * is rejected, because the commit would be deferred and could be lost in a crash.
 * @throws the error of `body`, with nothing written; after any other error the outcome is unknown
 */
export function commitDurably(environment: Environment, body: () => void): void {
  usedUpTo.delete(environment)
  environment.root.transactionSync(() => {
    const result: unknown = body()
    assert(result === undefined, 'the body of a transaction is synchronous')
  })
}

/**
 * Results of `usedBytes` since the last transaction: a query of LMDB takes a twentieth of the time of a
 * single write.
 */
const usedUpTo = new WeakMap<Environment, number>()

/** Bytes of the data file up to the end of its last used page. */
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
