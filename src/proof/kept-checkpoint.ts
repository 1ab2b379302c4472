import type { ChainPlace } from './chain-check.js'
import type { Check } from './job.js'
import { type CheckpointNote, isSignedBy, parseCheckpoint } from './note.js'
import { TreeHasher } from './tree.js'

export interface KeptStrand {
  /** Records including genesis. */
  size: number
  /** Hash of the last record. */
  chainHead: string
}

/** The part of the state of a chain that a checkpoint is compared with. */
type ChainPosition = Pick<ChainPlace, 'seq' | 'head' | 'key'>

interface Compared {
  strand: string
  firstSeq: number
  lastSeq: number
  /** Records of the whole strand at the time of the export, including genesis. */
  strandSize: number
}

/**
 * Compares an export with an earlier checkpoint. The checkpoint must be signed by the key in force after its
 * records, or by a key of a later rotation in the export, but not by a key that its records have rotated away
 * (docs/FORMAT.md, A checkpoint of the past).
 */
export class KeptCheckpoint {
  readonly #note: CheckpointNote | undefined
  readonly #tree = new TreeHasher()
  #key = ''
  #keySigns = false
  #signer: 'valid' | 'former' | undefined
  #rootHex: string | undefined
  #chainHead = ''

  constructor(note: string) {
    this.#note = parseCheckpoint(note)
  }

  /** The strand at the time of the checkpoint, if `fault` returns undefined. */
  get strand(): KeptStrand {
    return { size: this.#note?.size ?? 0, chainHead: this.#chainHead }
  }

  /** Must be called with each state of a chain: before its first record, and after each record. */
  *follow({ seq, head, key }: ChainPosition): Check<void> {
    if (this.#note === undefined) return
    const { size } = this.#note
    if (key !== this.#key) {
      this.#key = key
      this.#keySigns = yield* isSignedBy(this.#note, key)
    }
    if (this.#keySigns) this.#signer = seq >= size ? 'valid' : (this.#signer ?? 'former')
    if (seq > size) return
    // An export that does not begin at genesis has no tree; `fault` refuses it.
    if (head !== undefined && this.#tree.size === seq - 1) yield* this.#tree.join({ level: 0, rootHex: head })
    if (seq !== size || this.#tree.size !== size) return
    this.#rootHex = yield* this.#tree.root()
    this.#chainHead = head ?? ''
  }

  /** The fault of the checkpoint, compared with a valid export, or undefined. */
  fault({ strand, firstSeq, lastSeq, strandSize }: Compared): string | undefined {
    if (this.#note === undefined) return 'The checkpoint is not a valid signed note'
    const { origin, size, rootHex } = this.#note
    if (origin !== `strandfast/${strand}`) return 'The checkpoint is of another strand'
    if (firstSeq > 0) return 'Only an export from seq 0 can be compared with a checkpoint'
    const exported = lastSeq + 1
    // The key in force at the end of a shorter export is not a former key.
    const signer = this.#keySigns ? 'valid' : this.#signer
    if (signer === 'former') {
      return `The checkpoint is signed by a key that was rotated away before the strand had ${size} records`
    }
    if (signer === undefined) {
      const further =
        strandSize > exported
          ? `, which has ${exported} of ${strandSize} records: one that reaches the rotation is needed`
          : ''
      return (
        `The checkpoint is not signed by the key in force after ${Math.min(size, exported)} records, nor by one of a ` +
        `later rotation in the export${further}`
      )
    }
    if (this.#rootHex === undefined) {
      return `The tail was cut: the checkpoint has ${size} records, the export ${exported}`
    }
    return this.#rootHex === rootHex
      ? undefined
      : `The strand was forked at or before record ${size - 1}: the checkpoint is over other records`
  }
}
