import { isDeepStrictEqual } from 'node:util'
import { freeAgent } from './operations.mjs'
import { forEachOf, send } from './request.mjs'
import { readHeads, readStrands } from './strands.mjs'

/**
 * A call of the load: the request, and the answer if there was one.
 * @typedef {{operation: import('./operations.mjs').Operation, answer?: {status: number, body: any}}} Entry
 */

/** Operations whose records are looked up by their hashes one by one. */
const LOOKED_UP = 200

/** Keeps what every round has proved so far, and checks the next one against it. */
export class Checker {
  /** @type {Map<string, import('./strands.mjs').Strand>} */
  #proved = new Map()
  /** @type {Map<string, import('./strands.mjs').Head>} */
  #heads = new Map()

  /**
   * Checks a data directory after a crash, by a server that was started on it again.
   * @param {string} url
   * @param {{journal: Entry[], whole: boolean}} round what the load did before the crash, and whether every strand is
   *   read again from its beginning
   * @returns {Promise<{faults: string[], strands: number, records: number}>}
   */
  async check(url, { journal, whole }) {
    /** @type {string[]} */
    const faults = []
    await this.#resend(url, journal, faults)
    const strands = await readStrands(url, { proved: this.#proved, whole }, faults)
    this.#proved = strands
    this.#heads = new Map([...strands].map(([agent, { records }]) => [agent, headOf(records)]))
    const found = recordsByOperation(strands, faults)
    for (const entry of journal) checkEntry(entry, { found, strands, faults })
    checkTargets(journal, strands, faults)
    await lookUp(url, journal, faults)
    let records = 0
    for (const strand of strands.values()) records += strand.records.length
    return { faults, strands: strands.size, records }
  }

  /**
   * Checks that everything that was answered is there and no strand got shorter, without verifying strands: the next
   * `check` of the same journal does that.
   * @param {string} url
   * @param {Entry[]} journal
   * @returns {Promise<{faults: string[], strands: number, records: number}>}
   */
  async glance(url, journal) {
    /** @type {string[]} */
    const faults = []
    await this.#resend(url, journal, faults)
    const touched = new Set(journal.flatMap(({ operation }) => operation.agents))
    // Heads of strands to which the load did not write are left to `check`.
    const still = new Map([...this.#heads].filter(([agent]) => !touched.has(agent)))
    const heads = await readHeads(url, still, faults)
    for (const [agent, { seq, hash }] of this.#heads) {
      const now = heads.get(agent)
      if (now === undefined || now.seq < seq || (now.seq === seq && now.hash !== hash))
        faults.push(
          `The strand of ${agent} ended with record ${seq} ${hash}, and now ends with ${now?.seq} ${now?.hash}`,
        )
    }
    this.#heads = heads
    await lookUp(url, journal, faults)
    const records = [...heads.values()].reduce((sum, { seq }) => sum + seq + 1, 0)
    return { faults, strands: heads.size, records }
  }

  /** Strands as they were proved last. @returns {ReadonlyMap<string, import('./strands.mjs').Strand>} by agent */
  get strands() {
    return this.#proved
  }

  /** Where each strand was last seen to end. @returns {ReadonlyMap<string, import('./strands.mjs').Head>} by agent */
  get heads() {
    return this.#heads
  }

  /** Calls with an Idempotency-Key are sent again, answered or not: they must take effect exactly once. */
  async #resend(url, journal, faults) {
    await forEachOf(
      journal.filter(({ operation }) => operation.keyed),
      async (entry) => {
        const again = await send(url, entry.operation.request)
        if (again.status >= 300) {
          faults.push(`${nameOf(entry)} sent again was answered ${again.status} ${again.body?.code}`)
        } else if (isAnswered(entry)) {
          if (!again.replayed || !isDeepStrictEqual(entry.answer?.body, again.body))
            faults.push(`${nameOf(entry)} sent again was answered otherwise: ${JSON.stringify(again.body)}`)
        } else entry.answer = { status: again.status, body: again.body }
      },
    )
  }
}

function headOf(records) {
  return { seq: records.length - 1, hash: records.at(-1)?.hash ?? '' }
}

/** Where each record of each operation lies: operation id → number → place. */
function recordsByOperation(strands, faults) {
  /** @type {Map<string, Map<number, {agent: string, seq: number, hash: string}>>} */
  const found = new Map()
  for (const [agent, { records }] of strands) {
    for (const [seq, { type, op, n, hash }] of records.entries()) {
      if (type !== 'record' || op === undefined) continue
      const ofOperation = found.get(op) ?? new Map()
      found.set(op, ofOperation)
      if (ofOperation.has(n)) faults.push(`Record ${n} of ${op} is there twice`)
      ofOperation.set(n, { agent, seq, hash })
    }
  }
  return found
}

function checkEntry(entry, { found, strands, faults }) {
  const { operation, answer } = entry
  if (answer !== undefined && answer.status >= 300) {
    if (answer.status !== 503)
      faults.push(`${nameOf(entry)} was answered ${answer.status} ${answer.body?.code}`)
    return
  }
  if (operation.kind === 'agent') checkAgent(entry, strands, faults)
  else if (operation.kind !== 'mutation') {
    checkRecords(entry, found.get(operation.id) ?? new Map(), faults)
    if (isAnswered(entry)) checkAnswer(entry, { found, strands, faults })
  }
}

function checkAgent(entry, strands, faults) {
  const strand = strands.get(entry.operation.agents[0])
  if (!isAnswered(entry)) return
  const { public_key: publicKey, strand: genesis, zone } = entry.answer.body
  if (strand?.publicKey !== publicKey || strand.records[0]?.hash !== genesis || strand.zone !== zone) {
    faults.push(`${nameOf(entry)} was answered, and the agent is not there as it said`)
  }
}

/** If it was answered, everything is there. If not, each commit is there completely or not at all. */
function checkRecords(entry, places, faults) {
  const { kind, agents } = entry.operation
  for (const [n, { agent }] of places) {
    if (agents[n] !== agent) faults.push(`Record ${n} of ${nameOf(entry)} lies on the strand of ${agent}`)
  }
  if (places.size === agents.length) return
  if (isAnswered(entry)) {
    faults.push(`${nameOf(entry)} was answered, and ${places.size} of its ${agents.length} records are there`)
  } else if (places.size > 0 && kind === 'batch') {
    faults.push(`${nameOf(entry)} was not answered, and ${places.size} of ${agents.length} records are there`)
  } else if (kind === 'ingest' && [...places.keys()].some((n) => n >= places.size)) {
    faults.push(`${nameOf(entry)} was not answered, and what is there is not its beginning`)
  }
}

/** The records are at the places that the answer names. */
function checkAnswer(entry, { found, strands, faults }) {
  const { operation, answer } = entry
  const places = found.get(operation.id)
  for (const [n, told] of toldRecords(entry).entries()) {
    const place = places?.get(n)
    if (place?.hash !== told.content_hash || place.seq !== told.seq)
      faults.push(`Record ${n} of ${nameOf(entry)} is not the one that was answered`)
  }
  if (operation.kind !== 'ingest' && operation.kind !== 'ingestMany') return
  const summaries = operation.kind === 'ingest' ? { [operation.agents[0]]: answer.body } : answer.body.agents
  if (answer.body.accepted !== operation.agents.length)
    faults.push(`${nameOf(entry)} was answered with ${answer.body.accepted} accepted`)
  for (const [agent, { last_seq: seq, chain_head: hash }] of Object.entries(summaries)) {
    if (strands.get(agent)?.records[seq]?.hash !== hash)
      faults.push(`${nameOf(entry)} was answered with a chain head that ${agent} does not have`)
  }
}

/** The changes of each record that was deleted or restored: those answered, and at most one that was not. */
function checkTargets(journal, strands, faults) {
  const records = strands.get(freeAgent)?.records ?? []
  const counts = new Map()
  for (const { target } of records) {
    if (target !== undefined) counts.set(target, (counts.get(target) ?? 0) + 1)
  }
  const expected = new Map()
  for (const entry of journal) {
    const { target } = entry.operation
    if (target === undefined) continue
    const { sure, perhaps } = expected.get(target.hash) ?? { sure: 0, perhaps: 0 }
    if (!isAnswered(entry)) expected.set(target.hash, { sure, perhaps: perhaps + 1 })
    else {
      expected.set(target.hash, { sure: sure + 1, perhaps })
      const record = records[entry.answer.body.seq]
      if (record?.target !== target.hash || record.type !== changeOf(target))
        faults.push(`${nameOf(entry)} was answered, and its record is not there`)
    }
  }
  for (const [hash, { sure, perhaps }] of expected) {
    const count = counts.get(hash) ?? 0
    if (count < sure || count > sure + perhaps)
      faults.push(`Record ${hash} was changed ${count} times, not ${sure} to ${sure + perhaps}`)
  }
}

/** Answered records are found by their hashes; deleted ones say so. */
async function lookUp(url, journal, faults) {
  const entries = journal.filter((entry) => isAnswered(entry) && toldRecords(entry).length > 0)
  await forEachOf(entries.slice(-LOOKED_UP), async (entry) => {
    const told = toldRecords(entry).at(-1)
    const path = `/v1/agents/${told.agent}/records/${told.content_hash}`
    const { status, body } = await send(url, { method: 'GET', path })
    if (status !== 200 || body.seq !== told.seq || body.payload?.op !== entry.operation.id)
      faults.push(`${nameOf(entry)} was answered, and its record is not found by its hash`)
  })
  const lastChange = new Map()
  for (const entry of journal) {
    if (entry.operation.target !== undefined) lastChange.set(entry.operation.target.hash, entry)
  }
  await forEachOf([...lastChange.values()], async (entry) => {
    const { target } = entry.operation
    const path = `/v1/agents/${freeAgent}/records/${target.hash}`
    const { status, body } = await send(url, { method: 'GET', path })
    const wrong = isAnswered(entry) && body.deleted === target.deleted
    if (status !== 200 || wrong) faults.push(`${nameOf(entry)} was answered, and does not hold`)
  })
}

/** The write responses in an answer. */
function toldRecords({ operation, answer }) {
  if (operation.kind === 'write') return [answer.body]
  return operation.kind === 'batch' ? answer.body.results : []
}

function isAnswered({ answer }) {
  return answer !== undefined && answer.status < 300
}

function changeOf({ deleted }) {
  return deleted ? 'sys/restore' : 'sys/tombstone'
}

function nameOf({ operation }) {
  return `${operation.kind} ${operation.id}${operation.keyed ? ' (keyed)' : ''}`
}
