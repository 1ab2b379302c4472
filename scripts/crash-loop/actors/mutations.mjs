import { pick } from '../seeded-random.mjs'
import { send } from '../request.mjs'

/** The number of records that are checked after a crash, if not all are. */
const CHECKED = 12

/**
 * A record and its expected state.
 * @typedef {{agent: string, hash: string, text: string, erased: boolean, deleted: boolean, proposal?:
 * Proposal}} Expected
 * @typedef {{id: string, state: string}} Proposal
 */

/**
 * Writes records, erases some, and proposes the deletion of others, on which a second key votes, with their
 * expected state after a crash.
 */
export class Mutations {
  #name
  /** Faults of answers since the last check. @type {string[]} */
  #faults = []
  /** Calls that come first, in this order. @type {import('./calls.mjs').Call[]} */
  #first
  #free
  #protected
  /** The key that votes. */
  #voter = ''
  #written = 0
  /** @type {Expected[]} */
  #records = []

  /** @param {string} name */
  constructor(name) {
    this.#name = name
    this.#free = `${name}-free`
    this.#protected = `${name}-protected`
    this.#first = [this.#agent(this.#free, 'free'), this.#agent(this.#protected, 'protected'), this.#key()]
  }

  /**
   * Checks records and proposals.
   * @param {string} url
   * @param {boolean} whole whether every record is checked
   */
  async check(url, whole) {
    const faults = this.#faults.splice(0)
    const last = whole ? this.#records : this.#records.slice(-CHECKED)
    for (const { agent, hash, text, erased, deleted } of last) {
      const path = `/v1/agents/${agent}/records/${hash}`
      const { status, body } = await send(url, { method: 'GET', path })
      const right =
        body.erased === erased &&
        body.deleted === deleted &&
        body.payload?.text === (erased ? undefined : text)
      if (status !== 200 || !right)
        faults.push(`Record ${hash} of ${agent} differs from its answers: ${status} ${JSON.stringify(body)}`)
    }
    if (!this.#first.length) faults.push(...(await this.#wrongProposals(url)))
    return faults
  }

  async #wrongProposals(url) {
    const path = `/v1/proposals?agent=${this.#protected}&limit=1000`
    const { body } = await send(url, { method: 'GET', path })
    const shown = body.proposals.map((proposal) => `${proposal.proposal_id} ${proposal.state}`)
    const known = this.#records.flatMap(({ proposal }) =>
      proposal ? [`${proposal.id} ${proposal.state}`] : [],
    )
    return shown.toSorted().join() === known.toSorted().join()
      ? []
      : [`The proposals of ${this.#protected} are ${shown.join(', ')}, not ${known.join(', ')}`]
  }

  /** @param {() => number} random */
  draw(random) {
    const [first] = this.#first
    if (first !== undefined) return first
    const dice = random()
    const whole = this.#records.filter(({ agent, erased }) => agent === this.#free && !erased)
    if (dice < 0.25 && whole.length > 0) return this.#erase(pick(random, whole))
    const open = this.#records.filter(({ proposal }) => proposal?.state === 'proposed')
    if (dice < 0.5 && open.length > 0) return this.#vote(pick(random, open), random)
    const unproposed = this.#records.filter(
      (one) => one.agent === this.#protected && one.proposal === undefined,
    )
    if (dice < 0.7 && unproposed.length > 0) return this.#propose(pick(random, unproposed))
    return this.#write(pick(random, [this.#free, this.#protected]))
  }

  #agent(name, zone) {
    return {
      name: `agent ${name}`,
      request: { method: 'POST', path: '/v1/agents', body: { name, zone } },
      expected: 201,
      done: () => void this.#first.shift(),
    }
  }

  #key() {
    const body = { name: this.#name, scopes: ['proposals:decide'] }
    return {
      name: `key of ${this.#name}`,
      request: { method: 'POST', path: '/v1/admin/api-keys', body },
      expected: 201,
      done: ({ key }) => {
        this.#voter = key
        this.#first.shift()
      },
    }
  }

  #write(agent) {
    const text = `${this.#name} ${this.#written++}`
    return {
      name: `record "${text}"`,
      request: { method: 'POST', path: `/v1/agents/${agent}/records`, body: { data: { text } } },
      expected: 201,
      done: ({ content_hash: hash }) =>
        void this.#records.push({ agent, hash, text, erased: false, deleted: false }),
    }
  }

  #erase(record) {
    return {
      name: `erasure of "${record.text}"`,
      request: { method: 'POST', path: `/v1/agents/${record.agent}/records/${record.hash}/erase` },
      done: () => void (record.erased = true),
    }
  }

  #propose(record) {
    return {
      name: `proposal to delete "${record.text}"`,
      request: { method: 'DELETE', path: `/v1/agents/${record.agent}/records/${record.hash}` },
      expected: 202,
      done: ({ proposal_id: id, state }) => void (record.proposal = { id, state }),
    }
  }

  /** The proposer cancels a proposal, or the other key votes. */
  #vote(record, random) {
    const [vote, state] = pick(random, [
      ['approve', 'applied'],
      ['reject', 'rejected'],
      ['cancel', 'cancelled'],
    ])
    const { id } = record.proposal
    const request = { method: 'POST', path: `/v1/proposals/${encodeURIComponent(id)}/${vote}` }
    return {
      name: `${vote} of ${id}`,
      request: { ...request, ...(vote !== 'cancel' && { key: this.#voter }) },
      done: (body) => {
        record.proposal = { id, state }
        record.deleted = state === 'applied'
        if (body.state !== state) this.#faults.push(`${vote} of ${id} returned the state ${body.state}`)
      },
    }
  }
}
