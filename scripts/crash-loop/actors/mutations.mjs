import { pick } from '../seeded-random.mjs'
import { send } from '../request.mjs'

/** Records and proposals that are looked at after one crash, beside those of `whole`. */
const LOOKED_AT = 12

/**
 * A record, and how it has to be found.
 * @typedef {{agent: string, hash: string, text: string, erased: boolean, deleted: boolean, proposal?: Proposal}} Kept
 * @typedef {{id: string, state: string}} Proposal
 */

/**
 * Records, some of which are erased; for others the deletion is proposed, and a second key votes. It knows the state in
 * which all of them must be after a crash.
 */
export class Mutations {
  #name
  /** What is wrong with answers since the last look. @type {string[]} */
  #faults = []
  /** What is still to be made before all others, in this order. @type {import('./calls.mjs').Call[]} */
  #first
  #free
  #protected
  /** The key that votes. */
  #voter = ''
  #written = 0
  /** @type {Kept[]} */
  #kept = []

  /** @param {string} name */
  constructor(name) {
    this.#name = name
    this.#free = `${name}-free`
    this.#protected = `${name}-protected`
    this.#first = [this.#agent(this.#free, 'free'), this.#agent(this.#protected, 'protected'), this.#key()]
  }

  /**
   * Looks at records and proposals.
   * @param {string} url
   * @param {boolean} whole whether at every record
   */
  async check(url, whole) {
    const faults = this.#faults.splice(0)
    const last = whole ? this.#kept : this.#kept.slice(-LOOKED_AT)
    for (const { agent, hash, text, erased, deleted } of last) {
      const path = `/v1/agents/${agent}/records/${hash}`
      const { status, body } = await send(url, { method: 'GET', path })
      const right =
        body.erased === erased &&
        body.deleted === deleted &&
        body.payload?.text === (erased ? undefined : text)
      if (status !== 200 || !right)
        faults.push(`Record ${hash} of ${agent} is not as was answered: ${status} ${JSON.stringify(body)}`)
    }
    if (!this.#first.length) faults.push(...(await this.#wrongProposals(url)))
    return faults
  }

  async #wrongProposals(url) {
    const path = `/v1/proposals?agent=${this.#protected}&limit=1000`
    const { body } = await send(url, { method: 'GET', path })
    const shown = body.proposals.map((proposal) => `${proposal.proposal_id} ${proposal.state}`)
    const known = this.#kept.flatMap(({ proposal }) => (proposal ? [`${proposal.id} ${proposal.state}`] : []))
    return shown.toSorted().join() === known.toSorted().join()
      ? []
      : [`The proposals of ${this.#protected} are ${shown.join(', ')}, not ${known.join(', ')}`]
  }

  /** @param {() => number} random */
  draw(random) {
    const [first] = this.#first
    if (first !== undefined) return first
    const dice = random()
    const whole = this.#kept.filter(({ agent, erased }) => agent === this.#free && !erased)
    if (dice < 0.25 && whole.length > 0) return this.#erase(pick(random, whole))
    const open = this.#kept.filter(({ proposal }) => proposal?.state === 'proposed')
    if (dice < 0.5 && open.length > 0) return this.#vote(pick(random, open), random)
    const unasked = this.#kept.filter((one) => one.agent === this.#protected && one.proposal === undefined)
    if (dice < 0.7 && unasked.length > 0) return this.#propose(pick(random, unasked))
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
        void this.#kept.push({ agent, hash, text, erased: false, deleted: false }),
    }
  }

  #erase(kept) {
    return {
      name: `erasure of "${kept.text}"`,
      request: { method: 'POST', path: `/v1/agents/${kept.agent}/records/${kept.hash}/erase` },
      done: () => void (kept.erased = true),
    }
  }

  #propose(kept) {
    return {
      name: `proposal to delete "${kept.text}"`,
      request: { method: 'DELETE', path: `/v1/agents/${kept.agent}/records/${kept.hash}` },
      expected: 202,
      done: ({ proposal_id: id, state }) => void (kept.proposal = { id, state }),
    }
  }

  /** The proposer withdraws it, or the other key decides. */
  #vote(kept, random) {
    const [vote, state] = pick(random, [
      ['approve', 'applied'],
      ['reject', 'rejected'],
      ['cancel', 'cancelled'],
    ])
    const { id } = kept.proposal
    const request = { method: 'POST', path: `/v1/proposals/${encodeURIComponent(id)}/${vote}` }
    return {
      name: `${vote} of ${id}`,
      request: { ...request, ...(vote !== 'cancel' && { key: this.#voter }) },
      done: (body) => {
        kept.proposal = { id, state }
        kept.deleted = state === 'applied'
        if (body.state !== state) this.#faults.push(`${vote} of ${id} was answered with state ${body.state}`)
      },
    }
  }
}
