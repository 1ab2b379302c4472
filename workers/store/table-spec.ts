import type { Environment } from './environment.js'
import type { MovedTable, RowMover, RowMovers } from './row-move.js'
import type { SetAside } from './set-aside.js'

/**
 * How one kind of row is stored: the engine writes what a commit group has changed by these specs, in the
 * order of `tableSpecs`, and names no table itself.
 */
export interface TableSpec<Opened, Changes> {
  /** Opens what reads and writes the tables, once for each store. */
  open(environment: Environment, setAside: SetAside): Opened
  /** How a reshard moves the rows of each table. Derived tables are absent. */
  moves?: RowMovers
  /** What is wrong in the tables, for the check of a store that nothing writes to. */
  faults?(environment: Environment): Iterable<string>
  /** The changes of a group that has none yet. */
  changes(): Changes
  /** The number of changed rows, for the space that they may need. */
  rows(changes: Changes): number
  /** Writes the changes, within the transaction of the group. */
  put(opened: Opened, changes: Changes, nowMs: number): void
  /** The number of changes that go into an index; 0 if absent. */
  indexed?(changes: Changes): number
  /** An index that the store writes in the background. */
  index?(opened: Opened): BackgroundIndex
}

/** An index whose newest part is in memory, and which is merged in steps. */
export interface BackgroundIndex {
  /** Whether an idle shard should continue to merge. */
  readonly needsStep: boolean
  /** Does the index's part of a commit, within its transaction. */
  step(): void
  /** Writes the entries in memory, within a transaction. */
  flush(): void
}

/** What a commit group changes, by spec. Reading it does not count as a change. */
export class Changes {
  readonly #bySpec = new Map<unknown, unknown>()

  get isEmpty(): boolean {
    return this.#bySpec.size === 0
  }

  /** The changes of this group so far; undefined if there are none. */
  find<Of>(spec: { changes(): Of }): Of | undefined {
    return this.#bySpec.get(spec) as Of | undefined
  }

  /** The changes of this group, to be added to. */
  of<Of>(spec: { changes(): Of }): Of {
    const found = this.find(spec)
    if (found !== undefined) return found
    const made = spec.changes()
    this.#bySpec.set(spec, made)
    return made
  }
}

/** The opened tables of a store, by spec. */
export class OpenedTables {
  readonly #environment: Environment
  readonly #setAside: SetAside
  readonly #bySpec = new Map<unknown, unknown>()

  constructor(environment: Environment, setAside: SetAside) {
    this.#environment = environment
    this.#setAside = setAside
  }

  of<Opened>(spec: { open(environment: Environment, setAside: SetAside): Opened }): Opened {
    const found = this.#bySpec.get(spec)
    if (found !== undefined) return found as Opened
    const opened = spec.open(this.#environment, this.#setAside)
    this.#bySpec.set(spec, opened)
    return opened
  }
}

/** A spec whose types are its own matter. */
export interface StoredTables {
  moves: readonly [MovedTable, RowMover][]
  faults(environment: Environment): Iterable<string>
  rows(changes: Changes): number
  indexed(changes: Changes): number
  put(tables: OpenedTables, changes: Changes, nowMs: number): void
  index(tables: OpenedTables): BackgroundIndex | undefined
}

export function stored<Opened, Of>(spec: TableSpec<Opened, Of>): StoredTables {
  return {
    moves: Object.entries(spec.moves ?? {}) as [MovedTable, RowMover][],
    faults: (environment) => spec.faults?.(environment) ?? [],
    rows(changes) {
      const found = changes.find(spec)
      return found === undefined ? 0 : spec.rows(found)
    },
    put(tables, changes, nowMs) {
      const found = changes.find(spec)
      if (found !== undefined) spec.put(tables.of(spec), found, nowMs)
    },
    indexed(changes) {
      const found = changes.find(spec)
      return found === undefined ? 0 : (spec.indexed?.(found) ?? 0)
    },
    index: (tables) => spec.index?.(tables.of(spec)),
  }
}
