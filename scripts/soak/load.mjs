import { inspect } from 'node:util'
import { send } from '../crash-loop/request.mjs'
import { between, pick } from '../crash-loop/seeded-random.mjs'
import { rootKey } from '../crash-loop/victim.mjs'

const AGENTS = 8
const USERS = 4
/** The interval of each kind of load. */
const EVERY_MS = { write: 100, stream: 500, mutate: 500, export: 5_000, login: 1_000 }
/** The number of open streams. */
const STREAMS = 8
/** The share of records that are written one by one; the rest is ingested. */
const SINGLE_SHARE = 0.1
const HASHES_MAX = 256
/** Records per call before the load begins. */
const FILL_BATCH = 2_500
const password = 'two dozen mild evenings'

const json = { 'content-type': 'application/json' }

/** A constant load of all kinds: writes, ingest, reads, streams, sign-ins, deletions. */
export class SteadyLoad {
  /** Wrong answers. @type {string[]} */
  faults = []
  records = 0
  /** The number of calls that were skipped because the previous one was still running. */
  skipped = 0
  #url
  #random
  #perTick
  /** @type {{agent: string, hash: string}[]} */
  #hashes = []
  /** @type {AbortController[]} */
  #streams = []
  #timers = []
  #running = new Set()
  #names = Array.from({ length: AGENTS }, (_none, index) => `soak-${index}`)
  /** Confirmed records per agent. @type {Map<string, number>} */
  #confirmed = new Map()
  /** Whether the server was killed. */
  #isDown = false

  /**
   * @param {string} url
   * @param {{random: () => number, rate: number}} options `rate`: records a second
   */
  constructor(url, { random, rate }) {
    this.#url = url
    this.#random = random
    this.#perTick = Math.round((rate * EVERY_MS.write) / 1_000)
  }

  /** Creates agents and users, writes `records` to fill the caches, and starts the load. */
  async begin(records) {
    for (const name of this.#names) await this.#post('/v1/agents', { name, zone: 'free' }, 201)
    for (let user = 0; user < USERS; user++)
      await this.#post('/v1/auth/register', { email: emailOf(user), password }, 201)
    for (let written = 0; written < records; written += FILL_BATCH) {
      await this.#ingest(pick(this.#random, this.#names), FILL_BATCH)
    }
    this.records = records
    const kinds = {
      write: () => this.#write(),
      stream: () => this.#stream(),
      mutate: () => this.#mutate(),
      export: () => this.#export(),
      login: () => this.#login(),
    }
    for (const [kind, work] of Object.entries(kinds)) {
      this.#timers.push(setInterval(() => this.#startUnlessRunning(kind, work), EVERY_MS[kind]))
    }
  }

  /** Ends the load. */
  async end() {
    for (const timer of this.#timers) clearInterval(timer)
    for (const stream of this.#streams) stream.abort()
    await Promise.all(this.#running)
  }

  /** The server will be killed: failures until `resume` are not faults. */
  expectCrash() {
    this.#isDown = true
  }

  /** The server is running again at this address: every confirmed record must exist. */
  async resume(url) {
    await Promise.all(this.#running)
    this.#url = url
    this.#isDown = false
    for (const [agent, count] of this.#confirmed) {
      const { seq } = (await send(this.#url, { method: 'GET', path: `/v1/agents/${agent}/head` })).body
      // The first record of a strand is its genesis record.
      if (!(seq >= count)) this.#fault(`${agent} ends with ${seq} after a crash, but ${count} were confirmed`)
    }
  }

  /** Starts `work` unless it still runs. */
  #startUnlessRunning(kind, work) {
    if (this.#isDown) return
    if ([...this.#running].some((one) => one.kind === kind)) {
      this.skipped++
      return
    }
    const done = work()
      .catch((error) => this.#fault(`${kind}: ${inspect(error)}`))
      .finally(() => this.#running.delete(done))
    done.kind = kind
    this.#running.add(done)
  }

  async #write() {
    const single = Math.max(1, Math.round(this.#perTick * SINGLE_SHARE))
    const many = this.#perTick - single
    const agent = pick(this.#random, this.#names)
    const writes = Array.from({ length: single }, async () => {
      const body = await this.#post(`/v1/agents/${agent}/records`, { data: this.#reading() }, 201)
      this.#remember({ agent, hash: body.content_hash })
      this.#confirm(agent, 1)
    })
    const reads = Array.from({ length: single }, () => this.#read())
    const ingest = this.#ingest(agent, many)
    await Promise.all([...writes, ...reads, ingest])
    this.records += this.#perTick
  }

  async #ingest(agent, count) {
    const lines = Array.from({ length: count }, () => JSON.stringify(this.#reading()))
    const headers = { 'content-type': 'application/x-ndjson' }
    await this.#send('POST', `/v1/ingest/${agent}`, { headers, body: lines.join('\n') })
    this.#confirm(agent, count)
  }

  async #read() {
    if (this.#hashes.length === 0) return
    const { agent, hash } = pick(this.#random, this.#hashes)
    await this.#send('GET', `/v1/agents/${agent}/records/${hash}`)
    await this.#post(`/v1/agents/${agent}/query`, { type: 'latest', limit: 20 })
  }

  /** Opens a stream and closes the oldest. */
  async #stream() {
    const abort = new AbortController()
    this.#streams.push(abort)
    if (this.#streams.length > STREAMS) this.#streams.shift().abort()
    const path = this.#random() < 0.5 ? '/v1/stream' : `/v1/agents/${pick(this.#random, this.#names)}/stream`
    const headers = { authorization: `Bearer ${rootKey}` }
    try {
      const response = await fetch(this.#url + path, { headers, signal: abort.signal })
      if (response.status !== 200) this.#fault(`A stream returned ${response.status}`)
      void drain(response.body)
    } catch (error) {
      // Aborted before the answer, because the machine is busy.
      if (!abort.signal.aborted) throw error
    }
  }

  /** Deletes, restores and erases a record. */
  async #mutate() {
    const agent = pick(this.#random, this.#names)
    const { content_hash: hash } = await this.#post(
      `/v1/agents/${agent}/records`,
      { data: this.#reading() },
      201,
    )
    const path = `/v1/agents/${agent}/records/${hash}`
    await this.#send('DELETE', path)
    await this.#send('POST', `${path}/restore`)
    await this.#send('POST', `${path}/erase`)
    this.records += 4
  }

  async #export() {
    const agent = pick(this.#random, this.#names)
    const { body: head } = await send(this.#url, { method: 'GET', path: `/v1/agents/${agent}/head` })
    const from = Math.max(0, head.seq - 500)
    const { status } = await drainedGet(this.#url, `/v1/strand/export?agent=${agent}&from_seq=${from}`)
    if (status !== 200) this.#fault(`An export returned ${status}`)
  }

  async #login() {
    const email = emailOf(between(this.#random, 0, USERS - 1))
    const entered = await this.#post('/v1/auth/login', { email, password })
    const renewed = await this.#post('/v1/auth/refresh', { refresh_token: entered.refresh_token })
    const headers = { authorization: `Bearer ${renewed.token}` }
    await this.#send('GET', '/v1/auth/me', { headers })
    await this.#send('POST', '/v1/auth/logout', { headers })
  }

  #remember(record) {
    this.#hashes.push(record)
    if (this.#hashes.length > HASHES_MAX) this.#hashes.shift()
  }

  #reading() {
    return { sensor: between(this.#random, 1, 1_000), value: this.#random(), text: 'x'.repeat(200) }
  }

  #post(path, body, expected = 200) {
    return this.#send('POST', path, { headers: json, body: JSON.stringify(body), expected })
  }

  async #send(method, path, { expected = 200, ...more } = {}) {
    const { status, body } = await send(this.#url, { method, path, ...more })
    if (status !== expected) this.#fault(`${method} ${path} returned ${status} ${body?.code}`)
    return body
  }

  #confirm(agent, count) {
    this.#confirmed.set(agent, (this.#confirmed.get(agent) ?? 0) + count)
  }

  #fault(text) {
    if (this.#isDown) return
    if (this.faults.length < 20) this.faults.push(text)
  }
}

function emailOf(user) {
  return `soak-${user}@example.org`
}

async function drainedGet(url, path) {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${rootKey}` } })
  await drain(response.body)
  return response
}

/** Reads a body until it ends or is aborted. */
async function drain(body) {
  try {
    for await (const _bytes of body ?? []) continue
  } catch {
    // Aborted by this process.
  }
}
