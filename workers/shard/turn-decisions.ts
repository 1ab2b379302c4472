import { refuse, type Refusal } from '../../src/base/errors.js'
import type { Outcome } from '../../src/protocol/messages.js'
import { RowSetAside } from '../store/set-aside.js'
import { InvalidRow } from '../store/tables/row-shape.js'
import { agentOf, type CommandTable, type Numbered, type Write } from './command-table.js'
import type { CommitGroup } from './commit-group.js'
import type { Decision, ShardState, Steps, Turn } from './state.js'

const diskFull = refuse(
  'storage_full',
  'The data disk is full, or the log cannot open a file; reads still work',
)

/** A long write that has started; `bytes` is the length of its body. */
export interface LongWrite {
  one: Numbered<Write>
  steps: Steps<Decision>
  bytes: number
}

/**
 * What a turn has decided. A write that throws, as for an invalid row, is answered with 500, and everything
 * that the turn has decided in memory is dropped: the agents are read again from the store, which has not
 * changed, and the other writes are decided again (docs/adr/0024-damage.md).
 */
export class TurnDecisions {
  readonly #state: ShardState
  readonly #commands: CommandTable
  readonly #turn: Turn
  readonly #newGroup: () => CommitGroup
  readonly #decisions = new Map<number, Decision>()
  /** The writes that were decided from their beginning in this turn. */
  readonly #writes: Numbered<Write>[] = []
  readonly failures: string[] = []

  constructor(
    { state, commands }: { state: ShardState; commands: CommandTable },
    turn: Turn,
    newGroup: () => CommitGroup,
  ) {
    this.#state = state
    this.#commands = commands
    this.#turn = turn
    this.#newGroup = newGroup
  }

  get count(): number {
    return this.#decisions.size
  }

  /** The outcomes of the writes, once their records are sealed. */
  get all(): Iterable<Numbered<Decision>> {
    return this.#decisions
  }

  /** Refuses a write that was not decided, because the disk is full. */
  refuseWithoutSpace(id: number): void {
    this.#decisions.set(id, diskFull)
  }

  /** Decides a write in one step. @returns false if it threw */
  decide(one: Numbered<Write>, decision: () => Decision): boolean {
    const found = this.attempt(one, decision)
    if (found !== undefined) this.add(one, found, true)
    return found !== undefined
  }

  /** Adds a decision. @param isWhole whether the write began in this turn, so that it can be decided again */
  add(one: Numbered<Write>, decision: Decision, isWhole: boolean): void {
    this.#decisions.set(one[0], decision)
    if (isWhole) this.#writes.push(one)
  }

  /** What a step of a write returns; undefined if it threw, so that the write is refused. */
  attempt<Result>(one: Numbered<Write>, step: () => Result): Result | undefined {
    try {
      return step()
    } catch (error) {
      this.#decideAgainWithout(one)
      if (error instanceof RowSetAside) return this.attempt(one, step)
      this.#decisions.set(one[0], failure(this.#state, { kind: one[1].kind, failures: this.failures }, error))
      return undefined
    }
  }

  #decideAgainWithout([, failed]: Numbered<Write>): void {
    const dropped = this.#turn.group
    this.#state.store.agents.readAgain(new Set([...dropped.touched.keys(), agentOf(failed)]))
    this.#turn.group = this.#newGroup()
    const turn: Turn = { group: this.#turn.group, held: this.#turn.held, spent: () => false }
    for (const [id, write] of this.#writes) {
      const steps = this.#commands.longSteps(this.#state, write, turn)
      let step = steps.next()
      while (step.done !== true) step = steps.next()
      this.#decisions.set(id, step.value)
    }
  }
}

/** What a command answers; 500 if it throws. The reason is logged, and an invalid row is counted. */
export function orFailure(
  state: ShardState,
  { kind, failures }: { kind: string; failures: string[] },
  answer: () => Outcome,
): Outcome {
  try {
    return answer()
  } catch (error) {
    return failure(state, { kind, failures }, error)
  }
}

function failure(
  { store }: ShardState,
  { kind, failures }: { kind: string; failures: string[] },
  error: unknown,
): Refusal {
  if (error instanceof InvalidRow) store.setAside.add(error.row, error)
  else failures.push(`${kind}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  return refuse(
    'internal_error',
    'The shard could not complete this command; the reason is in the log output of the server',
  )
}
