import { type CheckpointNote, isSignedBy, parseCheckpoint } from './checkpoint.js'
import type { ChainCheck } from './chain-check.js'
import type { Manifest } from './export-lines.js'
import { type SignatureCheck, sha256, toHex } from './webcrypto.js'

/** The strand as it was when a checkpoint of it was made. */
export interface KeptStrand {
  /** Records, genesis counted. */
  size: number
  /** Hash of the last of them. */
  chainHead: string
}

/**
 * Looks in an export for the strand that a checkpoint tells of, while the export is checked. The checkpoint may be signed
 * by the key in force after the records that it counts, or by one that a later rotation of the export names, but by none
 * that one of these records has rotated away (docs/FORMAT.md, A checkpoint of the past).
 */
export class KeptCheckpoint {
  readonly #note: CheckpointNote | undefined
  readonly #signatures: SignatureCheck
  #key = ''
  #keySigns = false
  #signer: 'one that may' | 'former' | undefined
  #rootHex: string | undefined
  #chainHead = ''

  constructor(note: string, signatures: SignatureCheck) {
    this.#note = parseCheckpoint(note)
    this.#signatures = signatures
  }

  /** The strand then, once it was found without fault. */
  get strand(): KeptStrand {
    return { size: this.#note?.size ?? 0, chainHead: this.#chainHead }
  }

  /** Looks at where a chain stands, after each record that it has taken. */
  async follow(chain: ChainCheck): Promise<void> {
    if (this.#note === undefined) return
    const { size } = this.#note
    // A key stays for many records, and is asked once.
    if (chain.key !== this.#key) {
      this.#key = chain.key
      this.#keySigns = await isSignedBy(this.#note, chain.key, this.#signatures)
    }
    if (this.#keySigns) this.#signer = chain.nextSeq >= size ? 'one that may' : (this.#signer ?? 'former')
    if (chain.nextSeq !== size) return
    this.#rootHex = await chain.root()
    this.#chainHead = chain.head
  }

  /** What is wrong with the checkpoint by an export that was found right, or undefined. */
  async fault({ strand, fromSeq, toSeq, recordCount }: Manifest): Promise<string | undefined> {
    if (this.#note === undefined) return 'The checkpoint is no signed note of this form'
    const { origin, size, rootHex } = this.#note
    if (origin !== `strandfast/${strand}`) return 'The checkpoint is of another strand'
    if (fromSeq > 0) return 'Only an export from seq 0 can be compared with a checkpoint'
    const exported = toSeq + 1
    // A key that is in force at the end of an export with fewer records is no former one.
    const signer = this.#keySigns ? 'one that may' : this.#signer
    if (signer === 'former') {
      return `The checkpoint is signed by a key that was rotated away before the strand had ${size} records`
    }
    if (signer === undefined) {
      const further =
        recordCount > toSeq
          ? `, which has ${exported} of ${recordCount + 1} records: one that reaches the rotation is needed`
          : ''
      return (
        `The checkpoint is not signed by the key in force after ${Math.min(size, exported)} records, nor by one of a ` +
        `later rotation in the export${further}`
      )
    }
    const root = size === 0 ? toHex(await sha256()) : this.#rootHex
    if (root === undefined) {
      return `The tail was cut: the checkpoint has ${size} records, the export ${exported}`
    }
    return root === rootHex
      ? undefined
      : `The strand was forked at or before record ${size - 1}: the checkpoint is over other records`
  }
}
