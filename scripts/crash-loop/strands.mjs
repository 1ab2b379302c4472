import { recordHash } from '../../dist/src/strand/hash.js'
import { verifyExport } from '../../dist/src/proof/node/verify-export.js'
import { exchange, forEachOf, send } from './request.mjs'

/**
 * A strand as verified from its exports.
 * @typedef {object} Strand
 * @property {string} publicKey
 * @property {string} zone
 * @property {Shown[]} records by seq
 */

/**
 * The stored facts of a record: `op` and `n` of a record of the load, `target` of a mutation.
 * @typedef {{hash: string, type: string, op?: string, n?: number, target?: string}} Shown
 */

/**
 * Parallel exports. The server starts a thread for each, which costs about a quarter of its start, so more
 * than one is only used to read everything.
 */
const WIDTH = { some: 1, whole: 4 }

/**
 * Exports and verifies every strand, from its last verified record or completely.
 * @param {string} url
 * @param {{proved: Map<string, Strand>, whole: boolean}} before the strands of the last round
 * @param {string[]} faults receives faults
 * @returns {Promise<Map<string, Strand>>} by agent
 */
export async function readStrands(url, { proved, whole }, faults) {
  /** @type {Map<string, Strand>} */
  const strands = new Map()
  const agents = await listAgents(url, faults)
  for (const agent of proved.keys()) {
    if (!agents.includes(agent)) faults.push(`The agent ${agent} is missing`)
  }
  await forEachOf(
    agents,
    async (agent) => {
      const strand = await readStrand(url, { agent, before: proved.get(agent), whole }, faults)
      if (strand !== undefined) strands.set(agent, strand)
    },
    whole ? WIDTH.whole : WIDTH.some,
  )
  return strands
}

/**
 * The last record of a strand.
 * @typedef {{seq: number, hash: string}} Head
 */

/**
 * Reads the heads of all strands.
 * @param {string} url
 * @param {ReadonlyMap<string, Head>} known heads that are reused for existing agents
 * @param {string[]} faults receives faults
 * @returns {Promise<Map<string, Head>>} by agent
 */
export async function readHeads(url, known, faults) {
  /** @type {Map<string, Head>} */
  const heads = new Map()
  await forEachOf(await listAgents(url, faults), async (agent) => {
    const before = known.get(agent)
    if (before !== undefined) return void heads.set(agent, before)
    const { body } = await send(url, { method: 'GET', path: `/v1/agents/${agent}/head` })
    heads.set(agent, { seq: body.seq, hash: body.hash.replace('sha256:', '') })
  })
  return heads
}

async function listAgents(url, faults) {
  const agents = []
  let cursor
  do {
    const query = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { body } = await send(url, { method: 'GET', path: `/v1/agents?limit=1000${query}` })
    agents.push(...body.agents)
    cursor = body.next_cursor ?? undefined
    if (cursor === undefined && body.total !== agents.length) {
      faults.push(`The list names ${agents.length} agents and counts ${body.total}`)
    }
  } while (cursor !== undefined)
  return agents
}

/** @returns {Promise<Strand | undefined>} */
async function readStrand(url, { agent, before, whole }, faults) {
  const { body: status } = await send(url, { method: 'GET', path: `/v1/agents/${agent}/status` })
  const count = before?.records.length ?? 0
  // The strand has not changed since it was verified.
  if (!whole && status.chain_head === before?.records.at(-1)?.hash && status.record_count === count - 1)
    return before
  // The export begins with the verified head, from which the new records must continue.
  const fromSeq = whole ? 0 : Math.max(0, count - 1)
  const lines = await exportLines(url, agent, fromSeq)
  const verified = await verifyExport(lines, { publicKey: before?.publicKey ?? status.public_key })
  if (!verified.ok) {
    faults.push(`The strand of ${agent} does not verify: ${verified.reason} (line ${verified.line})`)
    return undefined
  }
  const shown = lines.slice(1, -1).map(shownRecord)
  const records = [...(before?.records.slice(0, fromSeq) ?? []), ...shown]
  for (const [seq, { hash }] of before?.records.entries() ?? []) {
    if (records[seq]?.hash !== hash) {
      faults.push(`The strand of ${agent} lost its record ${seq}`)
      break
    }
  }
  // The genesis record is not counted.
  if (status.record_count !== records.length - 1 || status.chain_head !== records.at(-1)?.hash) {
    faults.push(`The status of ${agent} counts ${status.record_count}, its strand ${records.length - 1}`)
  }
  return { publicKey: status.public_key, zone: status.zone, records }
}

async function exportLines(url, agent, fromSeq) {
  const path = `/v1/strand/export?agent=${agent}&from_seq=${fromSeq}`
  const { status, text } = await exchange(url, { method: 'GET', path })
  if (status !== 200) throw new Error(`GET ${path} returned ${status}: ${text}`)
  return text.trimEnd().split('\n')
}

/** @returns {Shown} */
function shownRecord(line) {
  const { h, body } = JSON.parse(line)
  // An erased record has no body.
  const { op, n, target } = JSON.parse(body ?? '{}')
  return { hash: recordHash(h), type: /^type (.*)$/m.exec(h)?.[1] ?? '', op, n, target }
}
