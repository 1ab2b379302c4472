import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { workerEntry } from '../base/worker-entry.js'
import { limits } from '../base/limits/limits.js'
import { anyOf, isFlag, isNumber, isText, listOf, members, oneOf, optional } from '../base/shape.js'
import type { Segment } from '../proof/node/segment.js'
import type { ChainTally, Erasure } from '../proof/chain-check.js'
import type { SegmentResult, WatchedSize } from '../proof/segment-check.js'
import { answerOf } from '../protocol/pool-tasks.js'
import { isPlace, isSubtree } from '../protocol/reader-tasks.js'
import type { Trailer } from '../strand/strand-export.js'

/** The result of a thread: undefined if the position is not known and the first line does not contain it. */
const isResult = optional(
  members<SegmentResult>({
    lines: isNumber,
    place: isPlace,
    tally: members<ChainTally>({
      records: isNumber,
      signaturesChecked: isNumber,
      signaturesPassed: isNumber,
      sealed: isNumber,
      erased: isNumber,
      withheld: isNumber,
      rotations: isNumber,
      imported: isNumber,
    }),
    trusted: isFlag,
    subtrees: listOf(isSubtree),
    watched: listOf(members<WatchedSize>({ size: isNumber, head: isText, subtrees: listOf(isSubtree) })),
    erasures: listOf(
      anyOf(
        members<Extract<Erasure, { kind: 'erased' }>>({ kind: oneOf('erased'), seq: isNumber, hash: isText }),
        members<Extract<Erasure, { kind: 'named' }>>({
          kind: oneOf('named'),
          targetSeq: isNumber,
          target: isText,
        }),
      ),
    ),
    trailer: optional(
      members<Trailer>({
        chainHead: isText,
        records: isNumber,
        checkpoint: optional(isText),
        recordCount: optional(isNumber),
      }),
    ),
    fault: optional(members<{ seq?: number; reason: string }>({ seq: optional(isNumber), reason: isText })),
    unreadable: optional(isText),
    assumed: optional(members({ line: isText, after: isPlace })),
  }),
)

export class SegmentPool {
  readonly #pool: Piscina
  /** Maximum number of segments that are being checked or queued: two for each thread. */
  readonly segmentsMax: number

  constructor() {
    const threads = Math.min(availableParallelism(), limits.verifyThreadsMax)
    this.segmentsMax = 2 * threads
    this.#pool = new Piscina({
      filename: fileURLToPath(workerEntry('verify')),
      minThreads: threads,
      maxThreads: threads,
      maxQueue: this.segmentsMax,
    })
  }

  async check(segment: Segment): Promise<SegmentResult | undefined> {
    const result: unknown = await this.#pool.run(segment, { name: 'verifySegment' })
    return answerOf(isResult, result)
  }

  async close(): Promise<void> {
    // Piscina emits a result that arrives afterwards as an error.
    this.#pool.on('error', () => undefined)
    await this.#pool.destroy()
  }
}
