import { assert } from '../../base/assert.js'
import type { Logger } from '../../base/log.js'
import { NodeTable } from '../database/nodes.js'
import type { RowSecret } from '../database/row-mac.js'
import { openDurable } from '../database/server-check.js'
import { clusterTables, statementsOf } from '../database/statements.js'
import { requireTables } from '../database/tables.js'

/** Dependencies of `OwnDatabase`. */
interface OwnDatabaseParts {
  urls: readonly string[]
  secret: RowSecret
  log: Logger
}

const statements = statementsOf(clusterTables)

/** The database of a node: the server that accepts writes may change, the tables must stay the same. */
export class OwnDatabase {
  readonly #parts: OwnDatabaseParts
  #isReplicated: boolean | undefined
  #identity: string | undefined

  constructor(parts: OwnDatabaseParts) {
    this.#parts = parts
  }

  /** The identity of the tables. */
  get identity(): string {
    assert(this.#identity !== undefined, 'a node has connected once before it uses its tables')
    return this.#identity
  }

  /** Connects for heartbeats. @throws UnfitServer; Error if no server can be reached */
  async connect(): Promise<NodeTable> {
    const { urls, secret, log } = this.#parts
    const { session, server } = await openDurable(urls, async (opened) => {
      this.#identity = await requireTables(opened, clusterTables, this.#identity)
    })
    if (this.#isReplicated === true && !server.replicated)
      log.warn(
        'the cluster’s database no longer waits for a standby at commit: writes acknowledged from now on are lost with its disk',
      )
    this.#isReplicated = server.replicated
    return new NodeTable(session, statements, { secret })
  }
}
