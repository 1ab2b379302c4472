import type { Check } from './job.js'
import { type CheckpointNote, isSignedBy, parseCheckpoint } from './note.js'
import { TreeHasher } from './tree.js'

/** The strand as it was when a checkpoint of it was made. */
export interface KeptStrand {
  /** Records, genesis counted. */
  size: number
  /** Hash of the last of them. */
  chainHead: string
}

/** The state of a chain between two records, as far as a checkpoint is compared with it. */
interface ChainPosition {
  /** Records before, which is the seq of the next. */
  seq: number
  /** Hash of the record before; undefined where there is none. */
  head: string | undefined
  /** Key in force. */
  key: string
}

/** The export that a checkpoint is compared with, which was found valid. */
interface Compared {
  strand: string
  firstSeq: number
  lastSeq: number
  /** Records of the whole strand when it was exported, genesis counted. */
  strandSize: number
}

/**
 * Looks in an export for the strand that a checkpoint describes. The checkpoint may be signed by the key in force after
 * the records that it counts, or by one that a later rotation of the export names, but not by one that one of these
 * records has rotated away (docs/FORMAT.md, A checkpoint of the past).
 */
export class KeptCheckpoint {
  readonly #note: CheckpointNote | undefined
  readonly #tree = new TreeHasher()
  #key = ''
  #keySigns = false
  #signer: 'one that may' | 'former' | undefined
  #rootHex: string | undefined
  #chainHead = ''

  constructor(note: string) {
    this.#note = parseCheckpoint(note)
  }

  /** The strand then, once it was found without fault. */
  get strand(): KeptStrand {
    return { size: this.#note?.size ?? 0, chainHead: this.#chainHead }
  }

  /** To be called with each place of a chain: before its first record, and after each record. */
  *follow({ seq, head, key }: ChainPosition): Check<void> {
    if (this.#note === undefined) return
    const { size } = this.#note
    // A key stays for many records, and is checked once.
    if (key !== this.#key) {
      this.#key = key
      this.#keySigns = yield* isSignedBy(this.#note, key)
    }
    if (this.#keySigns) this.#signer = seq >= size ? 'one that may' : (this.#signer ?? 'former')
    if (seq > size) return
    // An export that does not begin at genesis has no tree, and is refused in the end.
    if (head !== undefined && this.#tree.size === seq - 1) yield* this.#tree.join({ level: 0, rootHex: head })
    if (seq !== size || this.#tree.size !== size) return
    this.#rootHex = yield* this.#tree.root()
    this.#chainHead = head ?? ''
  }

  /** What is wrong with the checkpoint, compared with a valid export, or undefined. */
  fault({ strand, firstSeq, lastSeq, strandSize }: Compared): string | undefined {
    if (this.#note === undefined) return 'The checkpoint is no signed note of this form'
    const { origin, size, rootHex } = this.#note
    if (origin !== `strandfast/${strand}`) return 'The checkpoint is of another strand'
    if (firstSeq > 0) return 'Only an export from seq 0 can be compared with a checkpoint'
    const exported = lastSeq + 1
    // A key that is in force at the end of an export with fewer records is no former one.
    const signer = this.#keySigns ? 'one that may' : this.#signer
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
