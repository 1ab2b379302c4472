import type { InclusionProof } from '../../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../../client/webcrypto.js'
import { type AsyncJobs, runAsync } from '../../../proof/job.js'
import { type Checkpoint, strandOf, verifyCheckpoint } from '../../../proof/note.js'
import { type ReadRecord, examineRecord } from '../../../proof/record.js'
import { leadsToRoot, pathOf } from '../../../proof/tree-proof.js'
import { keyDigits, recordsText } from '../format.js'
import { fails, holds, type Verdict } from '../result.js'
import { trustIn } from './stored-check.js'

export interface Step {
  /** `noted` for a step that is valid but cannot be computed, for example of an erased body. */
  outcome: 'holds' | 'fails' | 'noted'
  title: string
  /** The computation, as text. */
  how: string
  /** The result as hex; undefined if the step has only an outcome. */
  result: string | undefined
}

/** Receives the steps of a proof as they are computed. */
type OnStep = (step: Step) => void

interface ProofMaterial {
  agent: string
  seq: number
  strand: string
  record: ReadRecord
  /** Fetches the record's inclusion proof. @throws ServiceError if the service has no record of this hash */
  fetchProof: (hash: string) => Promise<InclusionProof>
  /** The current key of the agent, which must have signed the checkpoint; 64 hex digits. */
  publicKey: string
}

/**
 * Proves that a record is in the tree of a signed checkpoint: body, header, signature, and the path to the
 * root (docs/FORMAT.md, Tree, proof, checkpoint).
 * @throws Error if the platform has no Ed25519; the error of `fetchProof`
 */
export async function proveRecord(material: ProofMaterial, onStep: OnStep): Promise<Verdict> {
  await requireEd25519()
  const { agent, seq, record, strand } = material
  const not = (reason: string): Verdict => fails(`record ${seq} of ${agent}: ${reason}`)
  const { header } = record
  if (header === undefined) return not('its header is not in the format strand-record/v1')
  if (header.seq !== seq) return not(`the server sent record ${header.seq} instead`)
  if (seq > 0 && header.strand !== strand) return not('its header names another strand')
  const { hash, fault } = await proveContent(material, onStep)
  if (fault !== undefined) return not(fault)
  const proof = await material.fetchProof(hash)
  const computed = await computeRoot({ seq, hash, proof, onStep })
  const checkpoint = await runAsync(verifyCheckpoint(proof.checkpoint, material.publicKey), webCryptoJobs())
  const wrong = computed.fault ?? checkpointFault({ checkpoint, strand, proof, root: computed.root })
  onStep({
    outcome: wrong === undefined ? 'holds' : 'fails',
    title: 'The checkpoint has this root and is signed with the agent’s key',
    how: `Ed25519 by key …${keyDigits(material.publicKey)} over the root`,
    result: checkpoint?.rootHex,
  })
  const trust = trustIn(strand, material.publicKey)
  const reason = wrong ?? trust.fault
  if (reason !== undefined) return not(reason)
  const size = recordsText(proof.tree_size - 1)
  return holds(
    `record ${seq} of ${agent} is in the checkpoint of ${size}, signed with key ` +
      `…${keyDigits(material.publicKey)}, and is unchanged`,
    trust.isKeyTrusted,
  )
}

/** Checks the record itself: its body, hash and signature. */
async function proveContent(
  { record, strand }: ProofMaterial,
  onStep: OnStep,
): Promise<{ hash: string; fault: string | undefined }> {
  const observed: string[] = []
  const jobs = webCryptoJobs()
  const observing: AsyncJobs = {
    ...jobs,
    async hash(bytes) {
      const found = await jobs.hash(bytes)
      observed.push(found)
      return found
    },
  }
  const examined = await runAsync(examineRecord(record, { strand, signature: true }), observing)
  const [hash = '', commitment] = observed
  const { content, withheld, sig, sealedBy, header } = record
  if (content === undefined) {
    const how = withheld ? 'The body is withheld from this key' : 'The body and its salt are erased'
    onStep({
      outcome: 'noted',
      title: 'The header has a commitment to a body',
      how,
      result: header?.body,
    })
  } else {
    onStep({
      outcome: examined.bodyMatches ? 'holds' : 'fails',
      title: 'The body matches the commitment in the header',
      how: 'SHA-256("strand-body/v1" LF ‖ salt ‖ body)',
      result: commitment,
    })
    if (!examined.bodyMatches) return { hash, fault: 'its body does not match the commitment in its header' }
  }
  onStep({
    outcome: 'holds',
    title: 'The hash of the record, a leaf of the tree',
    how: 'SHA-256(0x00 ‖ header)',
    result: hash,
  })
  if (sig === undefined) {
    const how = `The signature of record ${sealedBy} covers it`
    onStep({ outcome: 'noted', title: 'The record is sealed', how, result: undefined })
    return { hash, fault: undefined }
  }
  const signed = examined.signed === true
  onStep({
    outcome: signed ? 'holds' : 'fails',
    title: 'The signature matches the key in the header',
    how: `Ed25519(header) by key …${keyDigits(header?.key ?? '')}`,
    result: undefined,
  })
  return { hash, fault: signed ? undefined : 'its signature is invalid' }
}

/** Computes the root from the leaf and its siblings, one step for each. */
async function computeRoot(from: {
  seq: number
  hash: string
  proof: InclusionProof
  onStep: OnStep
}): Promise<{ root: string; fault: string | undefined }> {
  const { seq, hash, proof, onStep } = from
  const path = pathOf(proof.path)
  if (path === undefined) return { root: hash, fault: 'its path contains an invalid hash' }
  let root = hash
  let height = 0
  const jobs = webCryptoJobs()
  const observing: AsyncJobs = {
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
  const inclusion = { index: seq, size: proof.tree_size, leaf: hash, path, rootHex: proof.root }
  const isIncluded = await runAsync(leadsToRoot(inclusion), observing)
  onStep({
    outcome: isIncluded ? 'holds' : 'fails',
    title: isIncluded ? 'The path leads to the root' : 'The path leads to another root',
    how: `The root over ${recordsText(proof.tree_size - 1)}`,
    result: proof.root,
  })
  return { root, fault: isIncluded ? undefined : 'its path does not lead to the root of the tree' }
}

function checkpointFault(found: {
  checkpoint: Checkpoint | undefined
  strand: string
  proof: InclusionProof
  root: string
}): string | undefined {
  const { checkpoint, strand, proof, root } = found
  if (checkpoint === undefined) return 'the checkpoint is not signed with the key of the agent'
  if (strandOf(checkpoint) !== strand) return 'the checkpoint belongs to another strand'
  if (checkpoint.size !== proof.tree_size)
    return 'the checkpoint and the path have different numbers of records'
  return checkpoint.rootHex === root ? undefined : 'the checkpoint and the path have different roots'
}
