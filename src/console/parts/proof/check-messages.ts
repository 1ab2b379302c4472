import type { VerifyOptions, VerifyResult } from '../../../client/index.js'

/** What an export is checked against. */
export type CheckOptions = Pick<VerifyOptions, 'publicKey' | 'strand' | 'kept'> & {
  /** The hash that the first record of the export must have: the head that an earlier check ended at. */
  firstHash?: string | undefined
}

/** From the page to the worker: the options first, then pieces of the export as the worker asks for them. */
export type ToChecker =
  | { kind: 'begin'; options: CheckOptions }
  | { kind: 'piece'; bytes: Uint8Array<ArrayBuffer> }
  | { kind: 'end' }

/** From the worker to the page. */
export type FromChecker =
  /** It has room for another piece. */
  | { kind: 'more' }
  | { kind: 'progress'; records: number }
  | { kind: 'result'; result: VerifyResult; checkpoint: string | undefined }
  | { kind: 'failed'; message: string }
