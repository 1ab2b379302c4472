import { between, pick } from './seeded-random.mjs'

/**
 * A call of the load.
 * @typedef {object} Operation
 * @property {string} id is in the body of every record as `op`, with the record's number in the operation as
 * `n`
 * @property {'write' | 'batch' | 'ingest' | 'ingestMany' | 'agent' | 'mutation'} kind
 * @property {boolean} keyed whether it has an Idempotency-Key
 * @property {{method: string, path: string, headers: Record<string, string>, body?: string}} request
 * @property {string[]} agents the agent of each written record, in order; for `agent`, its name
 * @property {Target} [target] the record that a mutation changes
 */

/**
 * A record that is deleted and restored.
 * @typedef {{hash: string, seq: number, deleted: boolean}} Target
 */

/** The agent whose zone allows immediate deletion. */
export const freeAgent = 'crash-free'

const collections = ['crash-0', 'crash-1', 'crash-2']
const ingested = ['crash-ingest-0', 'crash-ingest-1']

/** Creates random operations. A target is used by one mutation at a time. */
export class OperationSource {
  /** @type {Target[]} */
  targets = []
  #random
  #prefix
  #created = 0

  /**
   * @param {() => number} random
   * @param {string} prefix begins each operation's id
   */
  constructor(random, prefix) {
    this.#random = random
    this.#prefix = prefix
  }

  /** @returns {Operation} */
  next() {
    const id = `${this.#prefix}-${this.#created++}`
    const dice = this.#random()
    if (dice < 0.4) return this.#write(id)
    if (dice < 0.55) return this.#batch(id)
    if (dice < 0.7) return this.#ingest(id)
    if (dice < 0.8) return this.#ingestMany(id)
    if (dice < 0.85) return this.#agent(id)
    return this.#mutation(id) ?? this.#write(id)
  }

  #write(id) {
    const free = this.#random() < 0.3
    const agent = free ? freeAgent : pick(this.#random, collections)
    const path = free ? `/v1/agents/${agent}/records` : `/v1/collections/${agent}/records`
    return this.#post(id, 'write', { path, agents: [agent], body: JSON.stringify(this.#record(id, 0)) })
  }

  #batch(id) {
    const agent = pick(this.#random, collections)
    const agents = Array.from({ length: between(this.#random, 1, 15) }, () => agent)
    const body = JSON.stringify({ records: agents.map((_agent, n) => this.#record(id, n)) })
    return this.#post(id, 'batch', { path: `/v1/collections/${agent}/records/batch`, agents, body })
  }

  #ingest(id) {
    const agent = pick(this.#random, ingested)
    // Sometimes an ingest of several chunks, and so several commits.
    const lines = this.#random() < 0.02 ? 1_500 : between(this.#random, 1, 30)
    const agents = Array.from({ length: lines }, () => agent)
    const body = agents.map((_agent, n) => JSON.stringify(this.#record(id, n).data)).join('\n')
    const path = `/v1/ingest/${agent}?signing=${pick(this.#random, ['record', 'group'])}`
    return this.#post(id, 'ingest', { path, agents, body, type: 'application/x-ndjson' })
  }

  #ingestMany(id) {
    const agents = Array.from({ length: between(this.#random, 2, 30) }, () => pick(this.#random, ingested))
    const lines = agents.map((agent, n) => JSON.stringify({ agent, ...this.#record(id, n) }))
    const path = `/v1/ingest?signing=${pick(this.#random, ['record', 'group'])}`
    return this.#post(id, 'ingestMany', {
      path,
      agents,
      body: lines.join('\n'),
      type: 'application/x-ndjson',
    })
  }

  #agent(id) {
    const name = `made-${id}`
    const body = { name, zone: pick(this.#random, ['free', 'governed', 'protected', 'immutable_core']) }
    if (this.#random() < 0.5) {
      body.seed_hex = Array.from({ length: 64 }, () => between(this.#random, 0, 15).toString(16)).join('')
    }
    return this.#post(id, 'agent', { path: '/v1/agents', agents: [name], body: JSON.stringify(body) })
  }

  #mutation(id) {
    const [target] = this.targets.splice(between(this.#random, 0, this.targets.length - 1), 1)
    if (target === undefined) return undefined
    const path = `/v1/agents/${freeAgent}/records/${target.hash}${target.deleted ? '/restore' : ''}`
    const operation = this.#post(id, 'mutation', { path, agents: [freeAgent] })
    if (!target.deleted) operation.request.method = 'DELETE'
    return { ...operation, target }
  }

  #record(id, n) {
    return { data: { op: id, n, pad: 'x'.repeat(between(this.#random, 0, 300)) } }
  }

  /** @returns {Operation} */
  #post(id, kind, { path, agents, body, type = 'application/json' }) {
    const keyed = this.#random() < 0.5
    const headers = keyed ? { 'content-type': type, 'idempotency-key': id } : { 'content-type': type }
    const request = body === undefined ? { headers } : { headers, body }
    return { id, kind, keyed, agents, request: { method: 'POST', path, ...request } }
  }
}
