import { isDeepStrictEqual } from 'node:util'
import { freeAgent } from './operations.mjs'
import { forEachOf, send } from './request.mjs'
import { readHeads, readStrands } from './strands.mjs'

/**
 * A call of the load: the request, and the answer if there was one.
 * @typedef {{operation: import('./operations.mjs').Operation, answer?: {status: number, body: any}}} Entry
 */

/** The number of operations whose records are looked up by hash. */
const LOOKED_UP = 200

/** Checks each round against the verified results of earlier rounds. */
export class Checker {
  /** @type {Map<string, import('./strands.mjs').Strand>} */
  #proved = new Map()
  /** @type {Map<string, import('./strands.mjs').Head>} */
  #heads = new Map()

  /**
   * Checks a data directory after a crash by the restarted server.
   * @param {string} url
   * @param {{journal: Entry[], whole: boolean}} round the calls of the load before the crash, and whether
   * every strand is read completely
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
   * Checks that everything that was confirmed exists and no strand became shorter, without verifying strands:
   * the next `check` of the same journal does that.
   * @param {string} url
   * @param {Entry[]} journal
   * @returns {Promise<{faults: string[], strands: number, records: number}>}
   */
  async glance(url, journal) {
    /** @type {string[]} */
    const faults = []
    await this.#resend(url, journal, faults)
    const touched = new Set(journal.flatMap(({ operation }) => operation.agents))
    // Heads of unchanged strands are left to `check`.
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

  /** The last verified strands. @returns {ReadonlyMap<string, import('./strands.mjs').Strand>} by agent */
  get strands() {
    return this.#proved
  }

  /** The last known heads. @returns {ReadonlyMap<string, import('./strands.mjs').Head>} by agent */
  get heads() {
    return this.#heads
  }

  /** Calls with an Idempotency-Key are repeated, answered or not: they must take effect exactly once. */
  async #resend(url, journal, faults) {
    await forEachOf(
      journal.filter(({ operation }) => operation.keyed),
      async (entry) => {
        const again = await send(url, entry.operation.request)
        if (again.status >= 300) {
          faults.push(`${nameOf(entry)} returned ${again.status} ${again.body?.code} when repeated`)
        } else if (isConfirmed(entry)) {
          if (!again.replayed || !isDeepStrictEqual(entry.answer?.body, again.body))
            faults.push(
              `${nameOf(entry)} returned another answer when repeated: ${JSON.stringify(again.body)}`,
            )
        } else entry.answer = { status: again.status, body: again.body }
      },
    )
  }
}

function headOf(records) {
  return { seq: records.length - 1, hash: records.at(-1)?.hash ?? '' }
}

/** The location of each record: operation id → number → location. */
function recordsByOperation(strands, faults) {
  /** @type {Map<string, Map<number, {agent: string, seq: number, hash: string}>>} */
  const found = new Map()
  for (const [agent, { records }] of strands) {
    for (const [seq, { type, op, n, hash }] of records.entries()) {
      if (type !== 'record' || op === undefined) continue
      const ofOperation = found.get(op) ?? new Map()
      found.set(op, ofOperation)
      if (ofOperation.has(n)) faults.push(`Record ${n} of ${op} exists twice`)
      ofOperation.set(n, { agent, seq, hash })
    }
  }
  return found
}

function checkEntry(entry, { found, strands, faults }) {
  const { operation, answer } = entry
  if (answer !== undefined && answer.status >= 300) {
    if (answer.status !== 503) faults.push(`${nameOf(entry)} returned ${answer.status} ${answer.body?.code}`)
    return
  }
  if (operation.kind === 'agent') checkAgent(entry, strands, faults)
  else if (operation.kind !== 'mutation') {
    checkRecords(entry, found.get(operation.id) ?? new Map(), faults)
    if (isConfirmed(entry)) checkAnswer(entry, { found, strands, faults })
  }
}

function checkAgent(entry, strands, faults) {
  const strand = strands.get(entry.operation.agents[0])
  if (!isConfirmed(entry)) return
  const { public_key: publicKey, strand: genesis, zone } = entry.answer.body
  if (strand?.publicKey !== publicKey || strand.records[0]?.hash !== genesis || strand.zone !== zone) {
    faults.push(`${nameOf(entry)} was confirmed, but the agent does not match`)
  }
}

/** If the call was confirmed, all records exist. If not, each commit exists completely or not at all. */
function checkRecords(entry, locations, faults) {
  const { kind, agents } = entry.operation
  for (const [n, { agent }] of locations) {
    if (agents[n] !== agent) faults.push(`Record ${n} of ${nameOf(entry)} is on the strand of ${agent}`)
  }
  if (locations.size === agents.length) return
  if (isConfirmed(entry)) {
    faults.push(
      `${nameOf(entry)} was confirmed, but only ${locations.size} of its ${agents.length} records exist`,
    )
  } else if (locations.size > 0 && kind === 'batch') {
    faults.push(`${nameOf(entry)} was not confirmed, but ${locations.size} of ${agents.length} records exist`)
  } else if (kind === 'ingest' && [...locations.keys()].some((n) => n >= locations.size)) {
    faults.push(`${nameOf(entry)} was not confirmed, and its records are not its beginning`)
  }
}

/** The records are where the answer says. */
function checkAnswer(entry, { found, strands, faults }) {
  const { operation, answer } = entry
  const locations = found.get(operation.id)
  for (const [n, answered] of answeredRecords(entry).entries()) {
    const location = locations?.get(n)
    if (location?.hash !== answered.content_hash || location.seq !== answered.seq)
      faults.push(`Record ${n} of ${nameOf(entry)} differs from its answer`)
  }
  if (operation.kind !== 'ingest' && operation.kind !== 'ingestMany') return
  const summaries = operation.kind === 'ingest' ? { [operation.agents[0]]: answer.body } : answer.body.agents
  if (answer.body.accepted !== operation.agents.length)
    faults.push(`${nameOf(entry)} confirmed ${answer.body.accepted} records`)
  for (const [agent, { last_seq: seq, chain_head: hash }] of Object.entries(summaries)) {
    if (strands.get(agent)?.records[seq]?.hash !== hash)
      faults.push(`${nameOf(entry)} returned a chain head that ${agent} does not have`)
  }
}

/** The changes of each deleted or restored record: the confirmed ones and at most one unanswered. */
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
    const { certain, possible } = expected.get(target.hash) ?? { certain: 0, possible: 0 }
    if (!isConfirmed(entry)) expected.set(target.hash, { certain, possible: possible + 1 })
    else {
      expected.set(target.hash, { certain: certain + 1, possible })
      const record = records[entry.answer.body.seq]
      if (record?.target !== target.hash || record.type !== changeOf(target))
        faults.push(`${nameOf(entry)} was confirmed, but its record is missing`)
    }
  }
  for (const [hash, { certain, possible }] of expected) {
    const count = counts.get(hash) ?? 0
    if (count < certain || count > certain + possible)
      faults.push(`Record ${hash} was changed ${count} times, not ${certain} to ${certain + possible}`)
  }
}

/** Confirmed records are found by hash; deleted ones are marked. */
async function lookUp(url, journal, faults) {
  const entries = journal.filter((entry) => isConfirmed(entry) && answeredRecords(entry).length > 0)
  await forEachOf(entries.slice(-LOOKED_UP), async (entry) => {
    const answered = answeredRecords(entry).at(-1)
    const path = `/v1/agents/${answered.agent}/records/${answered.content_hash}`
    const { status, body } = await send(url, { method: 'GET', path })
    if (status !== 200 || body.seq !== answered.seq || body.payload?.op !== entry.operation.id)
      faults.push(`${nameOf(entry)} was confirmed, but its record is not found by hash`)
  })
  const lastChange = new Map()
  for (const entry of journal) {
    if (entry.operation.target !== undefined) lastChange.set(entry.operation.target.hash, entry)
  }
  await forEachOf([...lastChange.values()], async (entry) => {
    const { target } = entry.operation
    const path = `/v1/agents/${freeAgent}/records/${target.hash}`
    const { status, body } = await send(url, { method: 'GET', path })
    const wrong = isConfirmed(entry) && body.deleted === target.deleted
    if (status !== 200 || wrong) faults.push(`${nameOf(entry)} was confirmed, but has no effect`)
  })
}

/** The write responses in an answer. */
function answeredRecords({ operation, answer }) {
  if (operation.kind === 'write') return [answer.body]
  return operation.kind === 'batch' ? answer.body.results : []
}

function isConfirmed({ answer }) {
  return answer !== undefined && answer.status < 300
}

function changeOf({ deleted }) {
  return deleted ? 'sys/restore' : 'sys/tombstone'
}

function nameOf({ operation }) {
  return `${operation.kind} ${operation.id}${operation.keyed ? ' (keyed)' : ''}`
}
