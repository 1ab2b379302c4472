import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asBuffer } from '../../../src/base/bytes.js'
import { pooledRandom, type RandomBytes } from '../../../src/base/random.js'
import type { OutcomeFrame } from '../../../src/protocol/frame.js'
import type { AuthRules } from '../../../src/protocol/auth-messages.js'
import type { Command, Outcome } from '../../../src/protocol/messages.js'
import type { Signing, WriteOptions } from '../../../src/protocol/command-options.js'
import type { RecordAppend } from '../../../src/protocol/record-messages.js'
import { commands } from '../../../workers/commands/decisions.js'
import { Shard } from '../../../workers/shard/shard.js'
import { Watched } from '../../../workers/shard/front-frames.js'
import type { Environment } from '../../../workers/store/environment.js'
import { ShardStore, type StoreOptions } from '../../../workers/store/shard-store.js'

/** The auth settings of test shards. */
export const testAuthRules: AuthRules = {
  lockout: { maxAttempts: 5, durationSecs: 900 },
  refreshExpirySecs: 2_592_000,
  jwtExpirySecs: 3_600,
  requireEmailVerify: false,
  metadataBytesMax: 4_096,
  tokenEra: 0,
}

/** Options of a shard of a test. */
interface ShardOptions extends StoreOptions {
  /** The source of salts and ids; the system's if absent. */
  random?: RandomBytes
}

/** A shard in the process and thread of the test, with a clock that the test moves. */
export class TestShard {
  nowMs = Date.UTC(2026, 0, 1)
  /**
   * Limits the turns. It does not move, so that no turn ends early on a busy machine; a test that counts
   * turns replaces it.
   */
  steadyClock = () => 0
  /** All frames that the shard has sent, in order. */
  readonly frames: OutcomeFrame[] = []
  /** The number of heartbeats. */
  heartbeats = 0
  /** The auth settings; a change takes effect after `reopen`. */
  auth = testAuthRules
  readonly #path: string
  readonly #options: ShardOptions
  /** The number of frames before the last `run`. */
  #ranFrom = 0
  #store: ShardStore
  #closed = false
  #shard: Shard

  /** @param path the directory of the store; a new directory if absent */
  constructor(path = mkdtempSync(join(tmpdir(), 'strandfast-shard-')), options: ShardOptions = {}) {
    this.#path = path
    this.#options = options
    this.#store = this.#openStore()
    this.#shard = this.#makeShard()
  }

  /** The directory of the store. */
  get path(): string {
    return this.#path
  }

  get store(): ShardStore {
    return this.#store
  }

  get environment(): Environment {
    return this.#store.environment
  }

  /** Carries out commands that arrived together. @returns their outcomes in the order of the commands */
  run(...commands: Command[]): Outcome[] {
    this.#ranFrom = this.frames.length
    this.#shard.run(commands.map((command, id) => [id, command]))
    const outcomes = new Map(this.#framesOfRun.flatMap((frame) => frame.outcomes))
    return commands.map((_command, id) => {
      const outcome = outcomes.get(id)
      if (outcome === undefined) throw new Error(`Expected an outcome of command ${id}`)
      return outcome
    })
  }

  /** The notices of the last `run`, which can take several turns with a frame each. */
  get notices(): OutcomeFrame['notices'] {
    return this.#framesOfRun.flatMap((frame) => frame.notices)
  }

  get #framesOfRun(): OutcomeFrame[] {
    return this.frames.slice(this.#ranFrom)
  }

  /** Takes numbered commands and carries out one turn. @returns whether commands are still waiting */
  turn(commands: readonly [id: number, command: Command][] = []): boolean {
    this.#shard.take([...commands])
    // The thread of a shard checks this too.
    if (this.#shard.busy) this.#shard.turn()
    this.#shard.syncNow()
    return this.#shard.busy
  }

  /** Carries out a command. */
  ask(command: Command): Outcome {
    const [outcome] = this.run(command)
    if (outcome === undefined) throw new Error('Expected an outcome')
    return outcome
  }

  /**
   * Moves the steady clock by `ms` milliseconds with every reading, so that a turn has time for few commands.
   */
  everyClockReadingTakes(ms: number): void {
    let looks = 0
    this.steadyClock = () => ms * looks++
  }

  /** The number of commit groups so far. */
  get commits(): number {
    return this.frames.at(-1)?.figures.commits ?? 0
  }

  /** Whether the thread would do background work now. */
  get needsStep(): boolean {
    return this.#shard.needsStep
  }

  /** Does all background work of an idle shard. */
  runBackgroundWork(): void {
    this.#store.flush()
    while (this.#store.needsStep) this.#shard.step()
  }

  /** Closes and opens the store, like a restart. */
  async reopen(): Promise<void> {
    await this.#store.close()
    this.#store = this.#openStore()
    this.#shard = this.#makeShard()
    this.frames.length = 0
    this.#ranFrom = 0
  }

  /** Closes the store without removing its files. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#store.close()
  }

  async remove(): Promise<void> {
    // A test may have closed or damaged the store.
    const { environment } = this.#store
    if (!this.#closed) await this.#store.close().catch(() => environment.root.close())
    rmSync(this.#path, { recursive: true, force: true })
  }

  #openStore(): ShardStore {
    return new ShardStore(this.#path, Buffer.alloc(32, 7), this.#options)
  }

  #makeShard(): Shard {
    return new Shard(
      {
        shard: 0,
        store: this.#store,
        clock: () => this.nowMs,
        steadyClock: () => this.steadyClock(),
        random: this.#options.random ?? pooledRandom(),
        masterSeed: Buffer.alloc(32, 7),
        recordBytesMax: 262_144,
        signing: 'record',
        auth: this.auth,
        proposals: { governedAutoApproveSecs: 60 },
        emailHmacKey: Buffer.alloc(32, 9),
        watched: new Watched(),
        heartbeat: () => {
          this.heartbeats++
        },
      },
      commands,
      (frame) => this.frames.push(frame),
    )
  }
}

/** The command that appends `{n}` to a collection. */
export function appendNumber(agent: string, n: number, options: WriteOptions = {}): RecordAppend {
  return {
    kind: 'recordAppend',
    agent,
    emerge: true,
    body: Buffer.from(JSON.stringify({ data: { n } })),
    options,
  }
}

/** Options of a write under an Idempotency-Key. */
export function keyed(key: string): WriteOptions {
  return { idempotency: { caller: 'test', key } }
}

/** Options of a write with a kind of signing. */
export function signed(signing: Signing): WriteOptions {
  return { signing }
}

/** The JSON of a reply. @throws Error if the outcome is not a reply */
// Tests read answers of every shape.
// oxlint-disable-next-line no-explicit-any
export function replyOf(outcome: Outcome | undefined): any {
  if (outcome?.kind !== 'reply') throw new Error(`Expected a reply, got ${JSON.stringify(outcome)}`)
  return JSON.parse(outcome.body)
}

/** What tests read of a record in a page. */
interface Row {
  record_id: string
  type: string
  payload: { n: number; outcome: string; [name: string]: unknown }
}

/** The views of the records of a page. */
export function rowsOf(outcome: Outcome | undefined): Row[] {
  if (outcome?.kind !== 'rows') throw new Error(`Expected rows, got ${JSON.stringify(outcome)}`)
  const rows: Row[] = JSON.parse(`[${asBuffer(outcome.rows).toString()}]`)
  if (rows.length !== outcome.count) throw new Error(`Expected ${outcome.count} rows, got ${rows.length}`)
  return rows
}

/** The code of a refusal; the kind of any other outcome. */
export function codeOf(outcome: Outcome | undefined): string | undefined {
  return outcome !== undefined && 'code' in outcome ? outcome.code : outcome?.kind
}
