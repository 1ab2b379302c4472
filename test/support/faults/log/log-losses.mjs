/**
 * Takes the power away from a shard and its store, over and over, between any two steps of its log, and looks at what a
 * shard finds that is opened on what the disk has left. In one process and thread, so that thousands of losses take
 * seconds.
 *
 *   node log-losses.mjs FOLDER ROUNDS SEED      FOLDER: of the compiled program, as dist
 *
 * Prints `{faults, cuts, told, replayed, erased}` as JSON.
 */
import {
  cutBefore,
  finishSync,
  holds,
  leave,
  PowerCut,
  step,
  syncsUnderWay,
  unsynced,
} from './lossy-disk.mjs'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { between, pick, seededRandom } from '../../../../scripts/crash-loop/seeded-random.mjs'

const [folder = 'dist', rounds = '100', seed = '1'] = process.argv.slice(2)
const load = (path) => import(pathToFileURL(resolve(folder, path)).href)
const { Shard } = await load('workers/shard/shard.js')
const { ShardStore } = await load('workers/store/shard-store.js')
const { readPosition } = await load('workers/store/log/position.js')

const ROUNDS_OF_A_LIFE = 12
const STEPS_MAX = 200
const AGENTS = ['a', 'b', 'c']
const GROUPS_UNDER_WAY = 2
const masterSeed = Buffer.alloc(32, 7)
const random = seededRandom(Number(seed))
// In memory where that is possible: which bytes a loss of power leaves is decided here, not by a disk.
const home = fs.mkdtempSync(join(fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'strandfast-losses-'))
process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }))

const found = { faults: [], cuts: 0, told: 0, replayed: 0, erased: 0 }
let directories = 0

/** What the outside was told of one data directory, and what it does there. */
class Told {
  signing = pick(random, ['record', 'group'])
  /** How many records are long, so that the log goes on in another file, and how often LMDB is brought up to it. */
  long = pick(random, [0, 0.05, 0.5])
  flushes = pick(random, [0, 0.5])
  /** How many commands are erasures, each of which brings LMDB up to the log too. */
  erasures = pick(random, [0, 0.1])
  /** Whether every group is one record, and as long as the others: then segments of before a loss lie where new ones end. */
  even = random() < 0.3

  /** hash → what was written: by appends that were answered, and by reads of others' appends. */
  records = new Map()
  /** Hashes of records that were answered to be erased. */
  erased = new Set()
  /** Hashes of records of which an erasure was asked for. */
  mayBeErased = new Set()
  /** agent → the weight of its edge that was answered last; later ones are higher. */
  weights = new Map()
  next = 0
}

class Machine {
  #told
  #nowMs = Date.UTC(2026, 0, 1)
  #steadyMs = 0
  #asked = new Map()
  #id = 0

  constructor(path, told) {
    this.path = path
    this.#told = told
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
        signing: told.signing,
        auth: {},
        proposals: { governedAutoApproveSecs: 60 },
        emailHmacKey: Buffer.alloc(32, 9),
        watched: new Set(),
        beat: () => {},
      },
      (frame) => this.#tell(frame),
    )
  }

  /** Carries out one command at once. */
  ask(command) {
    const id = ++this.#id
    let outcome
    this.#asked.set(id, (given) => (outcome = given))
    this.shard.run([[id, command]])
    return outcome
  }

  /** Works as a shard's thread does, in an order by chance, until the power is gone. */
  run() {
    for (;;) {
      // Also while segments wait for the disk, and nothing else is done.
      step()
      this.#nowMs += between(random, 0, 3)
      this.#steadyMs += this.#told.flushes * between(random, 0, 20)
      const todo = between(random, 0, 9)
      if (todo < 4) this.#take()
      else if (todo < 7 && syncsUnderWay() > 0) finishSync()
      else if (todo === 7 && this.shard.underWay === 0 && random() < this.#told.flushes) this.store.flush()
      else if (todo === 8 && this.shard.underWay === 0 && this.shard.needsStep) this.shard.step()
      this.#work()
    }
  }

  #work() {
    while (this.shard.busy && this.shard.underWay < GROUPS_UNDER_WAY) {
      this.shard.turn()
      this.shard.flush()
    }
    if (this.shard.underWay === 1 && this.shard.alone && random() < 0.5) this.shard.syncNow()
    if (this.shard.underWay > 0) {
      this.store.syncSoon((error) => {
        if (error !== null) throw error
        this.shard.releaseDurable()
      })
    }
  }

  #take() {
    const commands = Array.from({ length: this.#told.even ? 1 : between(random, 1, 4) }, () =>
      this.#command(),
    )
    this.shard.take(
      commands.map(([command, receive]) => {
        const id = ++this.#id
        this.#asked.set(id, receive)
        return [id, command]
      }),
    )
  }

  #command() {
    // On one strand, so that no segment of another past fits behind one of this.
    if (this.#told.even) return this.#append('a')
    const agent = pick(random, AGENTS)
    const chance = random()
    if (chance < 0.6) return this.#append(agent)
    if (chance < 0.75) return this.#read(agent)
    if (chance < 1 - this.#told.erasures) return this.#weigh(agent)
    const live = [...this.#told.records].filter(([hash]) => !this.#told.mayBeErased.has(hash))
    return live.length === 0 ? this.#append(agent) : this.#erase(...pick(random, live))
  }

  #append(agent) {
    const n = this.#told.next++
    // Some are so long that the log goes on in another file.
    const data = {
      n,
      secret: `secret-${n}-`,
      pad: 'x'.repeat(this.#told.even ? 100 : random() < this.#told.long ? 200_000 : between(random, 0, 900)),
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
        this.#told.records.set(hash, { agent, n })
      },
    ]
  }

  /** A row that is written over and over: which of its values is there shows in which order they came. */
  #weigh(agent) {
    const weight = this.#told.next++
    const command = { kind: 'edgeAdd', agent, dst: 'c', edgeType: 'follows', weight, options: {} }
    return [
      command,
      (outcome) => {
        replyOf(outcome)
        this.#told.weights.set(agent, Math.max(weight, this.#told.weights.get(agent) ?? 0))
      },
    ]
  }

  #read(agent) {
    return [
      { kind: 'recordQuery', agent, order: 'desc', limit: 3 },
      (outcome) => {
        if (outcome.kind !== 'rows') return
        for (const row of outcome.rows) {
          const { content_hash: hash, payload } = JSON.parse(String(row))
          if (payload !== null) this.#told.records.set(hash, { agent, n: payload.n })
        }
      },
    ]
  }

  #erase(hash, { agent, n }) {
    this.#told.mayBeErased.add(hash)
    const command = { kind: 'recordMutate', agent, action: 'erase', hash, principal: 'root', options: {} }
    return [
      command,
      (outcome) => {
        replyOf(outcome)
        this.#told.erased.add(hash)
        found.erased += 1
        if (holds(`secret-${n}-`)) fault(`the body of ${n} is in the log after its erasure was answered`)
      },
    ]
  }

  #tell({ outcomes, notices }) {
    for (const notice of notices)
      if (notice.kind === 'failed') fault(`a read failed: ${notice.failures.join()}`)
    for (const [id, outcome] of outcomes) {
      found.told += 1
      this.#asked.get(id)?.(outcome)
      this.#asked.delete(id)
    }
  }

  /** LMDB never has a segment that a loss of power could take from the log. */
  #expectNotAhead() {
    const position = readPosition(this.store.environment)
    const ahead = unsynced().filter(
      (bytes) =>
        bytes.length >= 512 &&
        bytes.toString('latin1', 32, 36) === 'SFL1' &&
        bytes.readUIntBE(50, 6) <= (position?.number ?? 0),
    )
    if (ahead.length > 0) fault(`LMDB has segment ${position?.number}, and the log has it not for sure`)
  }

  /** Whether everything is there that was told, nothing twice, in strands without a gap. */
  check() {
    const bodies = new Map()
    for (const agent of AGENTS) {
      const seen = new Set()
      let prev
      for (let seq = 0; ; seq++) {
        const event = this.#eventAt(agent, seq)
        if (event === undefined) break
        if (prev !== undefined && event.prev !== prev)
          fault(`record ${seq} of ${agent} does not follow the one before`)
        prev = event.hash
        const n = event.body?.n
        if (n !== undefined && seen.has(n)) fault(`${agent} has ${n} twice`)
        if (n !== undefined) seen.add(n)
        bodies.set(event.hash, event)
      }
    }
    for (const [hash, { agent, n }] of this.#told.records) {
      const event = bodies.get(hash)
      if (event === undefined) fault(`record ${n} of ${agent} was told and is gone`)
      else if (event.body === undefined ? !this.#told.mayBeErased.has(hash) : event.body.n !== n)
        fault(`record ${n} of ${agent} is another`)
    }
    for (const [agent, told] of this.#told.weights) {
      const [edge] = this.ask({ kind: 'edgeList', agent, direction: 'out', limit: 9, lookMax: 99 }).edges
      if (edge === undefined || edge.weight < told)
        fault(`an edge of ${agent} weighs ${edge?.weight}, and ${told} was told`)
    }
    for (const hash of this.#told.erased)
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

/** One data directory, from its making on. */
function live(lossesMax) {
  const told = new Told()
  let path = join(home, String(directories++))
  for (let losses = 0; losses <= lossesMax && found.faults.length === 0; losses++) {
    const machine = new Machine(path, told)
    try {
      machine.check()
      for (const agent of AGENTS) machine.ask({ kind: 'agentCreate', agent, zone: 'free', options: {} })
      // Often soon: then rows that the loss before has torn still lie behind the end of the log.
      cutBefore(between(random, 0, pick(random, [6, 40, STEPS_MAX, 5 * STEPS_MAX])))
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
