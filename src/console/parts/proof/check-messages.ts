import type { VerifyOptions, VerifyResult } from '../../../client/index.js'

/** What an export is verified against. */
export type CheckOptions = Pick<VerifyOptions, 'publicKey' | 'strand' | 'kept'> & {
  /** The hash that the first record must have: the chain head of an earlier check. */
  firstHash?: string | undefined
}

/** Messages to the worker: the options first, then a piece of the export for each `more`. */
export type ToChecker =
  | { kind: 'begin'; options: CheckOptions }
  | { kind: 'piece'; bytes: Uint8Array<ArrayBuffer> }
  | { kind: 'end' }

/** Messages from the worker. */
export type FromChecker =
  /** Requests the next piece. */
  | { kind: 'more' }
  | { kind: 'progress'; records: number }
  | { kind: 'result'; result: VerifyResult; checkpoint: string | undefined }
  | { kind: 'failed'; message: string }
