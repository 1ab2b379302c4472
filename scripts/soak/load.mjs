import { inspect } from 'node:util'
import { send } from '../crash-loop/request.mjs'
import { between, pick } from '../crash-loop/seeded-random.mjs'
import { rootKey } from '../crash-loop/victim.mjs'

const AGENTS = 8
const USERS = 4
/** How often each kind of load comes. */
const EVERY_MS = { write: 100, stream: 500, mutate: 500, export: 5_000, login: 1_000 }
/** Streams that are open at once. */
const STREAMS = 8
/** Part of the records that come one by one, the rest by ingest. */
const SINGLY = 0.1
const KEPT_HASHES = 256
/** Records of one call of those that are written before the load begins. */
const FILLED_AT_ONCE = 2_500
const password = 'two dozen mild evenings'

const json = { 'content-type': 'application/json' }

/** A load of every kind that stays the same: writes, ingest, reads, streams that come and go, sign-ins, deletions. */
export class SteadyLoad {
  /** Wrong answers. @type {string[]} */
  faults = []
  records = 0
  /** How often a call was left out because the one before still ran. */
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
  /** Records of each agent that the server has answered. @type {Map<string, number>} */
  #answered = new Map()
  /** The server has been killed. */
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

  /** Makes agents and users, writes `records` at once to fill the caches, and begins. */
  async begin(records) {
    for (const name of this.#names) await this.#post('/v1/agents', { name, zone: 'free' }, 201)
    for (let user = 0; user < USERS; user++)
      await this.#post('/v1/auth/register', { email: emailOf(user), password }, 201)
    for (let written = 0; written < records; written += FILLED_AT_ONCE) {
      await this.#ingest(pick(this.#random, this.#names), FILLED_AT_ONCE)
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
      this.#timers.push(setInterval(() => this.#once(kind, work), EVERY_MS[kind]))
    }
  }

  /** Ends all of it. */
  async end() {
    for (const timer of this.#timers) clearInterval(timer)
    for (const stream of this.#streams) stream.abort()
    await Promise.all(this.#running)
  }

  /** The server is going to be killed: what fails until `goOn` is no fault. */
  expectCrash() {
    this.#isDown = true
  }

  /** It serves again, at this address: everything that it had answered has to be there. */
  async goOn(url) {
    await Promise.all(this.#running)
    this.#url = url
    this.#isDown = false
    for (const [agent, count] of this.#answered) {
      const { seq } = (await send(this.#url, { method: 'GET', path: `/v1/agents/${agent}/head` })).body
      // The first record of a strand is its own.
      if (!(seq >= count)) this.#fault(`${agent} ends with ${seq} after a crash, and ${count} were answered`)
    }
  }

  /** Starts `work` unless it still runs. */
  #once(kind, work) {
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
    const singly = Math.max(1, Math.round(this.#perTick * SINGLY))
    const many = this.#perTick - singly
    const agent = pick(this.#random, this.#names)
    const writes = Array.from({ length: singly }, async () => {
      const body = await this.#post(`/v1/agents/${agent}/records`, { data: this.#reading() }, 201)
      this.#keep({ agent, hash: body.content_hash })
      this.#answer(agent, 1)
    })
    const reads = Array.from({ length: singly }, () => this.#read())
    const ingest = this.#ingest(agent, many)
    await Promise.all([...writes, ...reads, ingest])
    this.records += this.#perTick
  }

  async #ingest(agent, count) {
    const lines = Array.from({ length: count }, () => JSON.stringify(this.#reading()))
    const headers = { 'content-type': 'application/x-ndjson' }
    await this.#send('POST', `/v1/ingest/${agent}`, { headers, body: lines.join('\n') })
    this.#answer(agent, count)
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
      if (response.status !== 200) this.#fault(`A stream was answered ${response.status}`)
      void drain(response.body)
    } catch (error) {
      // Aborted before it was answered, because the machine is busy.
      if (!abort.signal.aborted) throw error
    }
  }

  /** A record that is deleted, restored and erased. */
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
    if (status !== 200) this.#fault(`An export was answered ${status}`)
  }

  async #login() {
    const email = emailOf(between(this.#random, 0, USERS - 1))
    const entered = await this.#post('/v1/auth/login', { email, password })
    const renewed = await this.#post('/v1/auth/refresh', { refresh_token: entered.refresh_token })
    const headers = { authorization: `Bearer ${renewed.token}` }
    await this.#send('GET', '/v1/auth/me', { headers })
    await this.#send('POST', '/v1/auth/logout', { headers })
  }

  #keep(kept) {
    this.#hashes.push(kept)
    if (this.#hashes.length > KEPT_HASHES) this.#hashes.shift()
  }

  #reading() {
    return { sensor: between(this.#random, 1, 1_000), value: this.#random(), text: 'x'.repeat(200) }
  }

  #post(path, body, expected = 200) {
    return this.#send('POST', path, { headers: json, body: JSON.stringify(body), expected })
  }

  async #send(method, path, { expected = 200, ...more } = {}) {
    const { status, body } = await send(this.#url, { method, path, ...more })
    if (status !== expected) this.#fault(`${method} ${path} was answered ${status} ${body?.code}`)
    return body
  }

  #answer(agent, count) {
    this.#answered.set(agent, (this.#answered.get(agent) ?? 0) + count)
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

/** Reads to the end, or until somebody ends it. */
async function drain(body) {
  try {
    for await (const _bytes of body ?? []) continue
  } catch {
    // Ended from here.
  }
}
