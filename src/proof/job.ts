/*
 * Checks are generators: for every hash and signature they yield a job and wait for its result. So each check is
 * written once, for callers that compute a job at once (server, command line) and for those whose platform answers
 * later (WebCrypto).
 */

/** What a check asks for. */
export type Job = HashJob | NodeJob | SignatureJob

/** SHA-256 of bytes. Answered by 64 hex digits. */
interface HashJob {
  kind: 'hash'
  bytes: Uint8Array
}

/** SHA-256(0x01 ‖ left ‖ right), of hashes of 64 hex digits (RFC 6962, 2.1). Answered by 64 hex digits. */
interface NodeJob {
  kind: 'node'
  left: string
  right: string
}

/**
 * Whether a signature verifies by RFC 8032, 5.1.7, without the cofactor. It has passed `mayVerify`. Answered by true or
 * false.
 */
interface SignatureJob {
  kind: 'signature'
  /** 64 hex digits. */
  publicKey: string
  message: Uint8Array
  /** 128 hex digits. */
  signature: string
}

/** A running check: it returns its result when its jobs are answered. */
export type Check<T> = Generator<Job, T, string | boolean>

/** Computes jobs at once. */
export interface JobsNow {
  hash(bytes: Uint8Array): string
  node(left: string, right: string): string
  verify(job: SignatureJob): boolean
}

/** Computes jobs asynchronously. */
export interface JobsLater {
  hash(bytes: Uint8Array): Promise<string>
  node(left: string, right: string): Promise<string>
  verify(job: SignatureJob): Promise<boolean>
}

/** Runs a check whose jobs are computed at once. */
export function runNow<T>(check: Check<T>, jobs: JobsNow): T {
  let step = check.next()
  while (step.done !== true) step = check.next(answer(step.value, jobs))
  return step.value
}

/** Runs a check whose jobs are computed asynchronously, one after the other. */
export async function runLater<T>(check: Check<T>, jobs: JobsLater): Promise<T> {
  let step = check.next()
  while (step.done !== true) step = check.next(await answer(step.value, jobs))
  return step.value
}

function answer(job: Job, jobs: JobsNow): string | boolean
function answer(job: Job, jobs: JobsLater): Promise<string | boolean>
function answer(job: Job, jobs: JobsNow | JobsLater): string | boolean | Promise<string | boolean> {
  if (job.kind === 'hash') return jobs.hash(job.bytes)
  return job.kind === 'node' ? jobs.node(job.left, job.right) : jobs.verify(job)
}

/** Asks for the SHA-256 of bytes, 64 hex digits. */
export function* hashOf(bytes: Uint8Array): Check<string> {
  return hex(yield { kind: 'hash', bytes })
}

/** Asks for an inner node of a tree, 64 hex digits. */
export function* nodeOf(left: string, right: string): Check<string> {
  return hex(yield { kind: 'node', left, right })
}

/** An answer that is a hash. */
export function hex(answer: string | boolean): string {
  if (typeof answer !== 'string') throw new TypeError('Expected a hash as an answer')
  return answer
}
