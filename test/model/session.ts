import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkedCall, createKeyAs } from '../support/http/answers.js'
import { eventually } from '../support/eventually.js'
import { MovedClock, movedClockOptions } from '../support/faults/moved-clock.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'
import { agree } from './matching.js'
import { dueAtMs, ending, resolution } from './mutations.js'
import { requestOf } from './requests.js'
import { decide, end, endsOf, requestText } from './rules.js'
import { isSystem, viewOf, type ChainRecord } from './strand.js'
import { Subscriber } from './subscriber.js'
import { genesisOf, type Growth, type Verdict } from './verdict.js'
import {
  chainOf,
  answerKey,
  nextSeq,
  readingsNow,
  type Actor,
  type Call,
  type StoredAnswer,
  type World,
} from './world.js'

/** The options of a run. */
export interface SessionOptions {
  shards: number
  signing: 'record' | 'group'
}

const startMs = Date.UTC(2026, 0, 1)

/** A server and its model. */
export class Session {
  readonly world: World
  readonly actors = new Map<string, Actor>()
  /** Calls with an Idempotency-Key, to send again. */
  readonly keyed: Call[] = []
  readonly subscriber = new Subscriber()
  /** A line for each action. */
  readonly log: string[] = []
  readonly #options: SessionOptions
  readonly #directory = mkdtempSync(join(tmpdir(), 'strandfast-model-'))
  readonly #clock = new MovedClock(this.#directory, startMs)
  #server: TestServer | undefined
  #number = 0

  constructor(options: SessionOptions) {
    this.#options = options
    this.world = {
      nowMs: startMs,
      latestMs: startMs,
      chains: new Map(),
      proposals: [],
      storedAnswers: new Map(),
      keyOwners: new Map(),
      governedSecs: 60,
    }
  }

  get server(): TestServer {
    if (this.#server === undefined) throw new Error('Expected a server that runs')
    return this.#server
  }

  /** An actor by the name that steps use. */
  actor(name: string): Actor {
    const actor = this.actors.get(name)
    if (actor === undefined) throw new Error(`Expected an actor, got ${name}`)
    return actor
  }

  /** A number that was not used before. */
  nextNumber(): number {
    return ++this.#number
  }

  async start(): Promise<void> {
    await this.#serve()
    const genesis = genesisOf(this.world, 'default', { zone: 'governed' })
    await this.#grow([{ agent: 'default', records: [genesis], signed: 'each' }])
    this.actors.set('root', {
      id: 'root',
      line: 'root',
      key: testRootKey,
      madeAtMs: 0,
      scopes: ['admin:*'],
      reach: '',
    })
    const changing = ['records:delete', 'records:erase', 'agents:admin'] as const
    const all = ['records:read', 'records:write', 'ingest', ...changing, 'proposals:decide'] as const
    await this.#addActor('writer', all.slice(0, -1))
    await this.#addActor('appender', all.slice(0, 3))
    await this.#addActor('decider', ['records:read', 'proposals:decide'])
    await this.#addActor('limited', all, { reach: 'a' })
    await this.#addActor('admin', ['admin:*'])
    // Created before there are two admin keys, because each of them would then need the approval of the
    // other.
    await this.#addActor('deputy', all, { maker: 'admin' })
    await this.#addActor('second', ['admin:*'])
  }

  async #addActor(
    name: string,
    scopes: Parameters<typeof createKeyAs>[2]['scopes'],
    { reach = '', maker = 'root' }: { reach?: string; maker?: string } = {},
  ): Promise<void> {
    const agents = reach === '' ? [] : [`${reach}*`]
    const by = this.actor(maker)
    const { key, key_id: id } = await createKeyAs(this.server, by.key, { scopes, agents })
    this.actors.set(name, {
      id,
      line: by.id === 'root' ? id : by.line,
      key,
      madeAtMs: this.world.nowMs,
      scopes,
      reach,
    })
  }

  async #serve(): Promise<void> {
    const { shards, signing } = this.#options
    this.#server = await startServer({
      dataDir: join(this.#directory, 'data'),
      nodeOptions: movedClockOptions,
      env: { ...this.#clock.env, SERVICE_SHARDS: String(shards), SERVICE_SIGNING: signing },
    })
    await this.subscriber.open(this.#server)
  }

  #nameOf(actor: Actor): string {
    return [...this.actors].find(([, one]) => one.id === actor.id)?.[0] ?? actor.id
  }

  /**
   * Writes a last record of every agent, by which the subscriber recognizes that it has received everything.
   */
  async finish(): Promise<void> {
    const agents = [...this.world.chains.keys()]
    const lines = agents.map((agent) => JSON.stringify({ agent, data: { n: this.nextNumber() } }))
    await this.perform({ request: { kind: 'ingestMany', lines, all: true }, by: this.actor('root') })
    await this.subscriber.agree(this.world)
  }

  /** Kills the server and removes its data. */
  async remove(): Promise<void> {
    await this.#server?.halt('SIGKILL')
    this.#clock.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /**
   * Carries out a call, and compares the answer and the appended records with the model.
   * @returns whether the call was refused
   */
  async perform(original: Call): Promise<boolean> {
    const one: Call = {
      ...original,
      ...(this.#options.signing === 'group' && signs(original) && { signing: 'group' }),
    }
    const verdict = decide(this.world, one)
    if (original.idempotencyKey !== undefined) this.keyed.push(original)
    const { route, options } = requestOf(original)
    const answer = await checkedCall(this.server, route, options)
    const about = `${this.#nameOf(original.by)}: ${route} ${JSON.stringify(options.body ?? options.raw ?? '')}`
    this.log.push(`${about} ${JSON.stringify(options.headers)}: ${answer.status} ${answer.body?.code ?? ''}`)
    if (verdict.kind === 'refused') {
      const code = String(answer.body?.code ?? answer.status)
      if (!verdict.codes.includes(code)) agree(about, verdict.codes, `${answer.status} ${answer.text}`)
    } else if (verdict.kind === 'replayed') {
      agree(`${about}, sent again`, verdict.answer, answer.text)
      agree(`${about}, sent again: Idempotency-Replayed`, 'true', answer.headers.get('idempotency-replayed'))
    } else await this.#done(one, verdict, { about, answer })
    await this.agreeOnHeads(about, endsOf(one.request))
    return verdict.kind === 'refused'
  }

  async #done(
    one: Call,
    verdict: Extract<Verdict, { kind: 'done' }>,
    { about, answer }: { about: string; answer: Awaited<ReturnType<typeof checkedCall>> },
  ): Promise<void> {
    if (answer.status !== verdict.status) agree(about, verdict.status, `${answer.status} ${answer.text}`)
    const realm = endsOf(one.request)[0] ?? ''
    const first = nextSeq(this.world, realm)
    await this.#grow(verdict.grows)
    verdict.change?.()
    agree(`The answer to ${about}`, verdict.answer(), answer.body)
    if (one.idempotencyKey === undefined || verdict.notStored === true) return
    const stored: StoredAnswer = {
      request: requestText(one),
      answer: answer.text,
      seqs: [first, nextSeq(this.world, realm) - 1],
      atMs: this.world.nowMs,
    }
    this.world.storedAnswers.set(answerKey(one, realm), stored)
  }

  /** Kills the server during a call and sends the call again, which is carried out once. */
  async performKilled(original: Call): Promise<boolean> {
    const { route, options } = requestOf(original)
    this.log.push(`The server is killed in ${route}`)
    const lost = call(this.server, route, options).catch(() => undefined)
    // The server is killed sometimes before the call has arrived, sometimes after it was answered.
    await call(this.server, 'GET /healthz')
    await this.server.halt('SIGKILL')
    await lost
    await this.#serve()
    return this.perform(original)
  }

  /** Carries out single writes concurrently; the server decides their order. */
  async performTogether(calls: readonly Call[]): Promise<void> {
    const { world } = this
    const grows = new Map<string, Growth>()
    this.log.push(`Together: ${calls.map((one) => JSON.stringify(one.request)).join(', ')}`)
    const answers = await Promise.all(
      calls.map(async (original) => {
        const { route, options } = requestOf(original)
        return { original, answer: await checkedCall(this.server, route, options) }
      }),
    )
    answers.sort((left, right) => left.answer.body.seq - right.answer.body.seq)
    for (const { original, answer } of answers) {
      const verdict = decide(world, original)
      if (verdict.kind !== 'done') throw new Error('Expected only writes that are carried out')
      agree('The status of a concurrent write', verdict.status, answer.status)
      for (const { agent, records } of verdict.grows) {
        const own: Growth = grows.get(agent) ?? { agent, records: [], signed: 'some' }
        // Only the first write creates the agent.
        own.records.push(...(own.records.length === 0 ? records : records.slice(-1)))
        grows.set(agent, own)
      }
    }
    await this.#grow([...grows.values()])
    for (const { original, answer } of answers) {
      const { hash, agent } = answer.body
      const record = chainOf(world, agent).find((one) => `sha256:${one.hash}` === hash)
      const expected = original.request.kind === 'write' ? original.request.item.data : undefined
      agree('The record in the answer to a concurrent write', expected, record?.body)
    }
    await this.agreeOnHeads('concurrent writes', [...grows.keys()])
  }

  /** Moves the clock forward or a little back, while the server runs or is stopped. */
  async passTime(ms: number, server: 'runs' | 'stops' | 'killed'): Promise<void> {
    this.log.push(`${ms} ms pass, and the server ${server}`)
    if (server !== 'runs') await this.server.halt(server === 'stops' ? 'SIGTERM' : 'SIGKILL')
    const { world } = this
    world.nowMs += ms
    world.latestMs = Math.max(world.latestMs, world.nowMs)
    this.#clock.set(world.nowMs)
    if (server !== 'runs') await this.#serve()
    await this.#resolveDue()
    await this.agreeOnHeads(`${ms} ms`, [...world.chains.keys()])
  }

  /** Ends the due proposals, once the server has ended them. */
  async #resolveDue(): Promise<void> {
    const { world } = this
    const due = world.proposals.filter((one) => one.state === 'proposed' && dueAtMs(one) <= world.nowMs)
    if (due.length === 0) return
    const ids = new Set(due.map(({ seq, agent }) => `p_${seq}_${agent}`))
    await eventually(async () => {
      const { body } = await checkedCall(this.server, 'GET /v1/proposals?state=proposed&limit=1000')
      return !body.proposals.some(({ proposal_id: id }: { proposal_id: string }) => ids.has(id))
    })
    due.sort((left, right) => dueAtMs(left) - dueAtMs(right) || left.seq - right.seq)
    for (const proposal of due) {
      if (proposal.state !== 'proposed') continue
      const ends =
        proposal.effectiveAtMs === null
          ? ending(world, proposal, 'expired')
          : resolution(world, proposal, nextSeq(world, proposal.agent))
      await this.#grow([{ agent: proposal.agent, records: ends.records, signed: 'each' }])
      end(world, ends)
    }
  }

  /**
   * Reads the new records of chains from the server and compares them; `agreeOnHeads` finds unexpected ones.
   */
  async #grow(grows: readonly Growth[]): Promise<void> {
    for (const growth of grows) {
      const { agent, records } = growth
      const from = nextSeq(this.world, agent)
      const found = (await this.#recordsFrom(agent, from)).slice(0, records.length)
      agree(
        `The records of ${agent} from ${from}`,
        records,
        found.map(({ type, body }) => ({ type, body })),
      )
      for (const record of found) this.#addRecord(agent, record)
      agreeOnSeals(growth, found)
    }
  }

  async #recordsFrom(agent: string, from: number): Promise<ChainRecord[]> {
    const route = `GET /v1/strand/export?agent=${agent}&from_seq=${from}`
    const { status, text } = await checkedCall(this.server, route)
    if (status !== 200) agree(`The records of ${agent} from ${from}`, 200, `${status} ${text}`)
    return recordsIn(text)
  }

  /** Adds a record to its chain, and checks it against its predecessor and the clock. */
  #addRecord(agent: string, record: ChainRecord): void {
    const chain = this.world.chains.get(agent) ?? []
    const last = chain.at(-1)
    const { from, to } = readingsNow(this.world)
    const about = `Record ${record.seq} of ${agent}`
    agree(`${about}: seq`, chain.length, record.seq)
    agree(`${about}: prev`, last?.hash ?? '0'.repeat(64), record.prev)
    agree(`${about}: key`, chain.length === 0 ? record.body.public_key : viewOf(chain).key, record.key)
    const inTime = record.hlc > (last?.hlc ?? '') && record.hlc >= from && record.hlc <= to
    if (!inTime) agree(`${about}: clock`, { after: last?.hlc, from, to }, record.hlc)
    this.world.chains.set(agent, [...chain, record])
  }

  /** Checks that chains end as in the model, so that nothing else was appended. */
  async agreeOnHeads(about: string, agents: readonly string[]): Promise<void> {
    await Promise.all(
      agents.map(async (agent) => {
        const chain = this.world.chains.get(agent)
        if (chain === undefined) return
        const { body } = await checkedCall(this.server, `GET /v1/agents/${agent}/head`)
        const expected = { seq: chain.length - 1, chain_head: chain.at(-1)?.hash }
        agree(`The head of ${agent} after: ${about}`, expected, {
          seq: body.seq,
          chain_head: body.chain_head,
        })
      }),
    )
  }
}

/** Whether the setting for group signing applies to a call. */
function signs({ request }: Call): boolean {
  return ['write', 'batch', 'ingest', 'ingestMany'].includes(request.kind)
}

/**
 * Checks the seals: each record of the server is signed; which records of clients are signed depends on their
 * writes.
 */
function agreeOnSeals({ agent, signed }: Growth, records: readonly ChainRecord[]): void {
  if (signed === 'some') return
  const last = records.at(-1)?.seq
  for (const { seq, type, sealedBy, signature } of records) {
    const seal = signed === 'last' && seq !== last && !isSystem(type) ? last : undefined
    const found = { sealedBy, signed: signature !== null }
    agree(`The seal of record ${seq} of ${agent}`, { sealedBy: seal, signed: seal === undefined }, found)
  }
}

/** The records of an export. */
export function recordsIn(text: string): ChainRecord[] {
  return text
    .trimEnd()
    .split('\n')
    .slice(1, -1)
    .map((line) => recordOf(JSON.parse(line)))
}

interface ExportLine {
  h: string
  sig?: string
  sealed_by?: number
  body?: string
}

function recordOf({ h, sig, sealed_by: sealedBy, body }: ExportLine): ChainRecord {
  const field = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(h)?.[1] ?? ''
  return {
    seq: Number(field('seq')),
    hash: createHash('sha256').update(`\0${h}`).digest('hex'),
    prev: field('prev'),
    hlc: field('hlc'),
    type: field('type'),
    key: field('key'),
    signature: sig ?? null,
    ...(sealedBy !== undefined && { sealedBy }),
    body: body === undefined ? undefined : JSON.parse(body),
    bodyBytes: Buffer.byteLength(body ?? ''),
  }
}
