import type { ProofResponse } from '../../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../../client/webcrypto.js'
import { type JobsLater, runLater } from '../../../proof/job.js'
import { type Checkpoint, strandOf, verifyCheckpoint } from '../../../proof/note.js'
import { type ReadRecord, examineRecord } from '../../../proof/record.js'
import { leadsToRoot, pathOf } from '../../../proof/tree-proof.js'
import { countText, keyDigits } from '../format.js'
import type { Verdict } from '../result.js'

/** One computed line of a proof. */
export interface Step {
  /** `noted` for what is as it should be and could not be computed. */
  outcome: 'holds' | 'fails' | 'noted'
  title: string
  /** The computation, as text. */
  how: string
  /** What came out of it, as hex; undefined where that is yes or no. */
  result: string | undefined
}

/** Takes the lines of a proof as they are computed. */
export type OnStep = (step: Step) => void

/** What a record is proved with. */
export interface ProofMaterial {
  agent: string
  seq: number
  strand: string
  record: ReadRecord
  /** Asks the service for the record's path. @throws ServiceError where it has no record of this hash */
  askForPath: (hash: string) => Promise<ProofResponse>
  /** The key in force, which has to have signed the checkpoint; 64 hex digits. */
  publicKey: string
}

/**
 * Computes everything that ties a record to a signed checkpoint: body, header, signature, and the path through the tree
 * (docs/FORMAT.md, Tree, proof, checkpoint).
 * @throws Error where the platform has no Ed25519; what `askForPath` throws
 */
export async function proveRecord(material: ProofMaterial, onStep: OnStep): Promise<Verdict> {
  await requireEd25519()
  const { agent, seq, record, strand } = material
  const not = (reason: string): Verdict => ({
    ok: false,
    text: `Not verified: record ${seq} of ${agent}: ${reason}`,
  })
  const { header } = record
  if (header === undefined) return not('its header is not of the form strand-record/v1')
  if (header.seq !== seq) return not(`the server sent record ${header.seq} in its place`)
  if (seq > 0 && header.strand !== strand) return not('its header names another strand')
  const { hash, fault } = await proveContent(material, onStep)
  if (fault !== undefined) return not(fault)
  const proof = await material.askForPath(hash)
  const reached = await climb({ seq, hash, proof, onStep })
  const checkpoint = await runLater(verifyCheckpoint(proof.checkpoint, material.publicKey), webCryptoJobs())
  const wrong = reached.fault ?? checkpointFault({ checkpoint, strand, proof, reached: reached.root })
  onStep({
    outcome: wrong === undefined ? 'holds' : 'fails',
    title: 'The checkpoint names this root, and the agent’s key has signed it',
    how: `Ed25519 by key …${keyDigits(material.publicKey)} over ${proof.tree_size} records`,
    result: checkpoint?.rootHex,
  })
  if (wrong !== undefined) return not(wrong)
  const size = countText(proof.tree_size)
  return {
    ok: true,
    text:
      `Verified: record ${seq} of ${agent} is one of the ${size} records that the checkpoint signed by key ` +
      `…${keyDigits(material.publicKey)} counts, unchanged`,
  }
}

/** Computes what can be checked of the record by itself. */
async function proveContent(
  { record, strand }: ProofMaterial,
  onStep: OnStep,
): Promise<{ hash: string; fault: string | undefined }> {
  const observed: string[] = []
  const jobs = webCryptoJobs()
  const observing: JobsLater = {
    ...jobs,
    async hash(bytes) {
      const found = await jobs.hash(bytes)
      observed.push(found)
      return found
    },
  }
  const examined = await runLater(examineRecord(record, { strand, signature: true }), observing)
  const [hash = '', commitment] = observed
  const { content, withheld, sig, sealedBy, header } = record
  if (content === undefined) {
    const how = withheld ? 'The body is withheld from this key' : 'The body and its salt are erased'
    onStep({
      outcome: 'noted',
      title: 'The header holds the commitment to a body',
      how,
      result: header?.body,
    })
  } else {
    onStep({
      outcome: examined.bodyMatches ? 'holds' : 'fails',
      title: 'The body is the one that the header commits to',
      how: 'SHA-256("strand-body/v1" LF ‖ salt ‖ body)',
      result: commitment,
    })
    if (!examined.bodyMatches) return { hash, fault: 'its body is not the one that its header commits to' }
  }
  onStep({
    outcome: 'holds',
    title: 'The hash of the record, a leaf of the tree',
    how: 'SHA-256(0x00 ‖ header)',
    result: hash,
  })
  if (sig === undefined) {
    const how = `Record ${sealedBy} carries the signature for this one`
    onStep({ outcome: 'noted', title: 'The record is sealed', how, result: undefined })
    return { hash, fault: undefined }
  }
  const signed = examined.signed === true
  onStep({
    outcome: signed ? 'holds' : 'fails',
    title: 'The signature is by the key that the header names',
    how: `Ed25519(header) by key …${keyDigits(header?.key ?? '')}`,
    result: undefined,
  })
  return { hash, fault: signed ? undefined : 'its signature does not verify' }
}

/** Goes up from the leaf, sibling by sibling. */
async function climb(from: {
  seq: number
  hash: string
  proof: ProofResponse
  onStep: OnStep
}): Promise<{ root: string; fault: string | undefined }> {
  const { seq, hash, proof, onStep } = from
  const path = pathOf(proof.path)
  if (path === undefined) return { root: hash, fault: 'its path has something in it that is no hash' }
  let root = hash
  let height = 0
  const jobs = webCryptoJobs()
  const observing: JobsLater = {
    ...jobs,
    async node(left, right) {
      const side = left === root ? 'right' : 'left'
      root = await jobs.node(left, right)
      height += 1
      const sibling = path[height - 1] ?? ''
      onStep({
        outcome: 'holds',
        title: `Step ${height} of ${path.length}: the sibling on the ${side}`,
        how: `SHA-256(0x01 ‖ ${side === 'left' ? `${sibling} ‖ this` : `this ‖ ${sibling}`})`,
        result: root,
      })
      return root
    },
  }
  const place = { index: seq, size: proof.tree_size, leaf: hash, path, rootHex: proof.root }
  const leads = await runLater(leadsToRoot(place), observing)
  onStep({
    outcome: leads ? 'holds' : 'fails',
    title: leads ? 'The path leads to the root' : 'The path leads to another root',
    how: `The root over ${proof.tree_size} records`,
    result: proof.root,
  })
  return { root, fault: leads ? undefined : 'its path does not lead to the root of the tree' }
}

function checkpointFault(found: {
  checkpoint: Checkpoint | undefined
  strand: string
  proof: ProofResponse
  reached: string
}): string | undefined {
  const { checkpoint, strand, proof, reached } = found
  if (checkpoint === undefined) return 'the checkpoint is not signed by the key of the agent'
  if (strandOf(checkpoint) !== strand) return 'the checkpoint is of another strand'
  if (checkpoint.size !== proof.tree_size)
    return 'the checkpoint counts another number of records than the path'
  return checkpoint.rootHex === reached
    ? undefined
    : 'the checkpoint names another root than the path leads to'
}
