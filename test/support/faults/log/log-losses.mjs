/**
 * Simulates losses of power of a shard and its store between any two steps of its log. After each, opens a
 * shard on the state that the disk may have, and checks it. Runs in one process and thread, so that thousands
 * of losses take seconds.
 *
 *   node log-losses.mjs FOLDER ROUNDS SEED [KIND]
 *     FOLDER  the compiled program, such as dist
 *     KIND    the only kind of load (by default all kinds, equally often)
 *
 * Prints `{faults, cuts, acknowledged, replayed, erased}` as JSON.
 */
import {
  cutBefore,
  finishSync,
  holds,
  leave,
  PowerCut,
  step,
  supportDirectWrites,
  syncsUnderWay,
  unsynced,
} from './lossy-disk.mjs'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { balancedPick, between, pick, seededRandom } from '../../../../scripts/crash-loop/seeded-random.mjs'

const [folder = 'dist', rounds = '100', seed = '1', onlyKind] = process.argv.slice(2)
const load = (path) => import(pathToFileURL(resolve(folder, path)).href)
const { commands } = await load('workers/commands/decisions.js')
const { Shard } = await load('workers/shard/shard.js')
const { ShardStore } = await load('workers/store/shard-store.js')
const { readPosition } = await load('workers/store/log/position.js')

const ROUNDS_OF_A_LIFE = 12
const STEPS_MAX = 200
const AGENTS = ['a', 'b', 'c']
const GROUPS_UNDER_WAY = 2
const masterSeed = Buffer.alloc(32, 7)
const random = seededRandom(Number(seed))
// In memory if possible, because the loss of power is simulated here, not on the disk.
const home = fs.mkdtempSync(join(fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'strandfast-losses-'))
process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }))

const found = { faults: [], cuts: 0, acknowledged: 0, replayed: 0, erased: 0 }
let directories = 0

/**
 * The kinds of load. With `even`, all groups are one record of equal length, so that new segments end where
 * earlier ones began. With `erasing`, some commands are erasures, each of which also flushes LMDB.
 */
const kinds = onlyKind === undefined ? ['even', 'erasing', 'other'] : [onlyKind]
/** What differs between data directories. A few of them already have all values. */
const draws = {
  /**
   * `long` is the share of records that are long, so that the log continues in another file. Long records
   * leave few steps for erasures, so the erasing load is picked with each share.
   */
  load: balancedPick(
    random,
    kinds.flatMap((kind) => [0, 0.05, 0.5].map((long) => ({ kind, long }))),
  ),
  signing: balancedPick(random, ['record', 'group']),
  /** How often LMDB is flushed. */
  flushes: balancedPick(random, [0, 0.5]),
  /** Whether segments can be written directly, so that none of them waits for a sync. */
  direct: balancedPick(random, [true, false]),
}

/** The requests and acknowledged answers of the clients of one data directory, and the kind of their load. */
class Clients {
  load = draws.load()
  even = this.load.kind === 'even'
  long = this.load.long
  erasures = this.load.kind === 'erasing' ? 0.1 : 0
  signing = draws.signing()
  flushes = draws.flushes()

  /** hash → record that a client knows, from the answer to an append or from a read. */
  records = new Map()
  /** Hashes of records whose erasure was acknowledged. */
  erased = new Set()
  /** Hashes of records whose erasure was requested. */
  mayBeErased = new Set()
  /** agent → last acknowledged weight of its edge; weights rise. */
  weights = new Map()
  next = 0
}

class Machine {
  #clients
  #nowMs = Date.UTC(2026, 0, 1)
  #steadyMs = 0
  #receivers = new Map()
  #id = 0

  constructor(path, clients) {
    this.path = path
    this.#clients = clients
    this.store = new ShardStore(path, masterSeed)
    found.replayed += this.store.replayed
    const { root } = this.store.environment
    const transaction = root.transactionSync.bind(root)
    root.transactionSync = (body) => {
      step()
      const result = transaction(body)
      this.#expectNotAhead()
      step()
      return result
    }
    this.shard = new Shard(
      {
        shard: 0,
        store: this.store,
        clock: () => this.#nowMs,
        steadyClock: () => this.#steadyMs,
        random: (length) => Buffer.from(Array.from({ length }, () => between(random, 0, 255))),
        masterSeed,
        recordBytesMax: 262_144,
        signing: clients.signing,
        auth: {},
        proposals: { governedAutoApproveSecs: 60 },
        emailHmacKey: Buffer.alloc(32, 9),
        watched: new Set(),
        heartbeat: () => {},
      },
      commands,
      (frame) => this.#receive(frame),
    )
  }

  /** Executes one command and returns its outcome. */
  execute(command) {
    const id = ++this.#id
    let outcome
    this.#receivers.set(id, (received) => (outcome = received))
    this.shard.run([[id, command]])
    return outcome
  }

  /** Works like a shard's thread, in random order, until the loss of power. */
  run() {
    for (;;) {
      // A loss of power can also happen while segments wait for the disk.
      step()
      this.#nowMs += between(random, 0, 3)
      this.#steadyMs += this.#clients.flushes * between(random, 0, 20)
      const choice = between(random, 0, 9)
      if (choice < 4) this.#take()
      else if (choice < 7 && syncsUnderWay() > 0) finishSync()
      else if (choice === 7 && this.shard.unsyncedCount === 0 && random() < this.#clients.flushes)
        this.store.flush()
      else if (choice === 8 && this.shard.unsyncedCount === 0 && this.shard.needsStep) this.shard.step()
      this.#work()
    }
  }

  #work() {
    while (this.shard.busy && this.shard.unsyncedCount < GROUPS_UNDER_WAY) {
      this.shard.turn()
      this.shard.flush()
    }
    if (this.shard.unsyncedCount === 1 && this.shard.alone && random() < 0.5) this.shard.syncNow()
    if (this.shard.unsyncedCount > 0) {
      this.store.syncSoon((error) => {
        if (error !== null) throw error
        this.shard.releaseDurable()
      })
    }
  }

  #take() {
    const commands = Array.from({ length: this.#clients.even ? 1 : between(random, 1, 4) }, () =>
      this.#command(),
    )
    this.shard.take(
      commands.map(([command, receive]) => {
        const id = ++this.#id
        this.#receivers.set(id, receive)
        return [id, command]
      }),
    )
  }

  #command() {
    // On one strand only, so that no segment from before a loss could follow a new one.
    if (this.#clients.even) return this.#append('a')
    const agent = pick(random, AGENTS)
    const chance = random()
    if (chance < 0.6) return this.#append(agent)
    if (chance < 0.75) return this.#read(agent)
    if (chance < 1 - this.#clients.erasures) return this.#weigh(agent)
    const live = [...this.#clients.records].filter(([hash]) => !this.#clients.mayBeErased.has(hash))
    return live.length === 0 ? this.#append(agent) : this.#erase(...pick(random, live))
  }

  #append(agent) {
    const n = this.#clients.next++
    // Some are so long that the log continues in another file.
    const data = {
      n,
      secret: `secret-${n}-`,
      pad: 'x'.repeat(
        this.#clients.even ? 100 : random() < this.#clients.long ? 200_000 : between(random, 0, 900),
      ),
    }
    const command = {
      kind: 'recordAppend',
      agent,
      emerge: false,
      body: Buffer.from(JSON.stringify({ data })),
      options: {},
    }
    return [
      command,
      (outcome) => {
        const { record_id: hash } = replyOf(outcome)
        this.#clients.records.set(hash, { agent, n })
      },
    ]
  }

  /** A row that is overwritten repeatedly: its value shows the order of the writes. */
  #weigh(agent) {
    const weight = this.#clients.next++
    const command = { kind: 'edgeAdd', agent, dst: 'c', edgeType: 'follows', weight, options: {} }
    return [
      command,
      (outcome) => {
        replyOf(outcome)
        this.#clients.weights.set(agent, Math.max(weight, this.#clients.weights.get(agent) ?? 0))
      },
    ]
  }

  #read(agent) {
    return [
      { kind: 'recordQuery', agent, order: 'desc', limit: 3 },
      (outcome) => {
        if (outcome.kind !== 'rows') return
        const rows = JSON.parse(`[${Buffer.from(outcome.rows)}]`)
        for (const { content_hash: hash, payload } of rows) {
          if (payload !== null) this.#clients.records.set(hash, { agent, n: payload.n })
        }
      },
    ]
  }

  #erase(hash, { agent, n }) {
    this.#clients.mayBeErased.add(hash)
    const command = { kind: 'recordMutate', agent, action: 'erase', hash, principal: 'root', options: {} }
    return [
      command,
      (outcome) => {
        replyOf(outcome)
        this.#clients.erased.add(hash)
        found.erased += 1
        if (holds(`secret-${n}-`)) fault(`the body of ${n} is in the log after its erasure was acknowledged`)
      },
    ]
  }

  #receive({ outcomes, notices }) {
    for (const notice of notices)
      if (notice.kind === 'failed') fault(`a read failed: ${notice.failures.join()}`)
    for (const [id, outcome] of outcomes) {
      found.acknowledged += 1
      this.#receivers.get(id)?.(outcome)
      this.#receivers.delete(id)
    }
  }

  /** Expects that LMDB has no segment that the log could lose by a loss of power. */
  #expectNotAhead() {
    const position = readPosition(this.store.environment)
    const ahead = unsynced().filter(
      (bytes) =>
        bytes.length >= 512 &&
        bytes.toString('latin1', 32, 36) === 'SFL1' &&
        bytes.readUIntBE(50, 6) <= (position?.number ?? 0),
    )
    if (ahead.length > 0) fault(`LMDB has segment ${position?.number}, which is not durable in the log`)
  }

  /** Checks that all acknowledged records exist once, in strands without gaps. */
  check() {
    const bodies = new Map()
    for (const agent of AGENTS) {
      const numbers = new Set()
      let prev
      for (let seq = 0; ; seq++) {
        const event = this.#eventAt(agent, seq)
        if (event === undefined) break
        if (prev !== undefined && event.prev !== prev)
          fault(`record ${seq} of ${agent} does not follow the previous one`)
        prev = event.hash
        const n = event.body?.n
        if (n !== undefined && numbers.has(n)) fault(`${agent} has ${n} twice`)
        if (n !== undefined) numbers.add(n)
        bodies.set(event.hash, event)
      }
    }
    for (const [hash, { agent, n }] of this.#clients.records) {
      const event = bodies.get(hash)
      if (event === undefined) fault(`record ${n} of ${agent} was acknowledged and is lost`)
      else if (event.body === undefined ? !this.#clients.mayBeErased.has(hash) : event.body.n !== n)
        fault(`record ${n} of ${agent} has changed`)
    }
    for (const [agent, acknowledged] of this.#clients.weights) {
      const [edge] = this.execute({ kind: 'edgeList', agent, direction: 'out', limit: 9, lookMax: 99 }).edges
      if (edge === undefined || edge.weight < acknowledged)
        fault(`an edge of ${agent} weighs ${edge?.weight}, but ${acknowledged} was acknowledged`)
    }
    for (const hash of this.#clients.erased)
      if (bodies.get(hash)?.body !== undefined) fault(`${hash} is not erased`)
  }

  #eventAt(agent, seq) {
    const found = this.store.agents.find(agent)
    const record = found && recordBySeq(this.store.environment, found.no, seq)
    if (record === undefined) return undefined
    const body = record.erased ? undefined : JSON.parse(String(record.body))
    return { hash: record.hash, prev: record.prev, body }
  }

  close() {
    void this.store.environment.root.close()
  }
}

const { recordBySeq } = await load('workers/store/tables/records.js')

function replyOf(outcome) {
  if (outcome.kind !== 'reply') throw new Error(`Expected a reply, got ${JSON.stringify(outcome)}`)
  return JSON.parse(outcome.body)
}

function fault(text) {
  if (found.faults.length < 5) found.faults.push(text)
}

/** Runs the rounds of one data directory, from its creation. */
function live(lossesMax) {
  const clients = new Clients()
  supportDirectWrites(draws.direct())
  // Often early, while torn segments of the previous loss are still after the end of the log.
  const stepsMax = balancedPick(random, [6, 40, STEPS_MAX, 5 * STEPS_MAX])
  let path = join(home, String(directories++))
  for (let losses = 0; losses <= lossesMax && found.faults.length === 0; losses++) {
    const machine = new Machine(path, clients)
    try {
      machine.check()
      for (const agent of AGENTS) machine.execute({ kind: 'agentCreate', agent, zone: 'free', options: {} })
      cutBefore(between(random, 0, stepsMax()))
      machine.run()
    } catch (error) {
      if (!(error instanceof PowerCut)) throw error
    }
    found.cuts += 1
    const next = join(home, String(directories++))
    fs.mkdirSync(next)
    leave(next, random)
    fs.copyFileSync(join(path, 'data.mdb'), join(next, 'data.mdb'))
    machine.close()
    fs.rmSync(path, { recursive: true, force: true })
    path = next
  }
  fs.rmSync(path, { recursive: true, force: true })
}

try {
  while (found.cuts < Number(rounds) && found.faults.length === 0) live(ROUNDS_OF_A_LIFE)
} catch (error) {
  fault(inspect(error))
}
console.log(JSON.stringify(found))
process.exit(0)
