import { open, type Database, type RootDatabase } from 'lmdb'
import { assert } from '../../src/base/assert.js'
import { StrandRuns } from './strand-runs.js'

/** A table of one shard: binary keys, binary values. */
export type Table = Database<Buffer, Buffer>

/** One shard's LMDB environment. The tables' keys are laid out in tables.ts. */
export interface Environment {
  root: RootDatabase<Buffer, Buffer>
  /** agent name → agent row. */
  agents: Table
  /** agent number → agent name. */
  names: Table
  /** block number → block. */
  blocks: Table
  /** agent number, first seq → where these records are; read and written by `runs` only. */
  strands: Table
  /** What is known of the other tables. */
  meta: Table
  /** Where the records of each strand lie. */
  runs: StrandRuns
  /** runs of the hash index. */
  hashes: Table
  /** agent number, seq of a record, seq of the mutation → what it did. */
  mutations: Table
  /** agent number, seq → body commitment of an erased record. */
  erasures: Table
  /** Filling that is written over pages which held erased bodies. */
  filling: Table
  /** agent number, seq → proposal. */
  proposals: Table
  /** agent number, seq of an open proposal → nothing. */
  proposalsOpen: Table
  /** agent number, target of an open proposal → its seq. */
  proposalTargets: Table
  /** due time, agent number, seq of an open proposal → nothing. */
  proposalDues: Table
  /** agent number, seq of a `sys/zone` record → the zone from there on. */
  zoneChanges: Table
  /** agent number of the source, type, destination → how the edge stands. */
  edges: Table
  /** destination, type, source → the same. */
  edgesIn: Table
  /** key in `edges`, clock → how the edge stood before it changed. */
  edgeHistory: Table
  /** caller and idempotency key → answer. */
  idempotency: Table
  /** expiry, idempotency key → nothing. */
  expiries: Table
  /** public key → agent name. */
  publicKeys: Table
  /** key id → scoped API key. */
  apiKeys: Table
  /** organism id → organism. */
  organisms: Table
  /** namespace, kind, id → a row of auth state. */
  auth: Table
  /** expiry, key of a row of auth state → nothing. */
  authExpiries: Table
  /** expiry, namespace, id → a session, token or user that has ended. */
  authEnded: Table
  /** due time, id → a mail to be sent. */
  mails: Table
}

/**
 * Opens (or makes) the environment of one shard.
 *
 * `overlappingSync: false` makes a commit answer after its fsync, not before (docs/adr/0004-durable-commits.md).
 */
export function openEnvironment(path: string, access: 'write' | 'read'): Environment {
  const root = open<Buffer, Buffer>({
    path,
    encoding: 'binary',
    keyEncoding: 'binary',
    overlappingSync: false,
    maxDbs: 48,
    maxReaders: 126,
    cache: false,
    // Unused parts of new pages are zeros, not what the memory held before: an erased body, say.
    noMemInit: false,
    readOnly: access === 'read',
  })
  const table = (name: string): Table =>
    root.openDB<Buffer, Buffer>({ name, encoding: 'binary', keyEncoding: 'binary', cache: false })
  const [blocks, strands, meta] = [table('blocks'), table('strands'), table('meta')]
  return {
    root,
    agents: table('agents'),
    names: table('names'),
    blocks,
    strands,
    meta,
    runs: new StrandRuns({ blocks, strands, meta }),
    hashes: table('hashes'),
    mutations: table('mutations'),
    erasures: table('erasures'),
    filling: table('filling'),
    proposals: table('proposals'),
    proposalsOpen: table('proposals-open'),
    proposalTargets: table('proposal-targets'),
    proposalDues: table('proposal-dues'),
    zoneChanges: table('zone-changes'),
    edges: table('edges'),
    edgesIn: table('edges-in'),
    edgeHistory: table('edge-history'),
    idempotency: table('idempotency'),
    expiries: table('expiries'),
    publicKeys: table('public-keys'),
    apiKeys: table('api-keys'),
    organisms: table('organisms'),
    auth: table('auth'),
    authExpiries: table('auth-expiries'),
    authEnded: table('auth-ended'),
    mails: table('mails'),
  }
}

/** How many rows a table has. */
export function rowCount(table: Table): number {
  const { entryCount } = table.getStats() as { entryCount: number }
  return entryCount
}

/**
 * Runs `body` as one transaction and returns when it is on disk.
 * A body that gives a promise would put off the commit and lose it at a crash, so that is refused.
 * @throws whatever `body` throws, with nothing written; any other failure means that the outcome is unknown
 */
export function commitDurably(environment: Environment, body: () => void): void {
  environment.root.transactionSync(() => {
    const result: unknown = body()
    assert(result === undefined, 'the body of a transaction is synchronous')
  })
}
