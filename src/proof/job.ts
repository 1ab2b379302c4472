/*
 * Checks are generators: for every hash and signature, they yield a job and receive its result. So each check
 * is written once, for synchronous callers (server, command line) and asynchronous ones (WebCrypto).
 */

/** A cryptographic operation that a check needs. */
export type Job = HashJob | NodeJob | SignatureJob

/** SHA-256 of bytes. The result has 64 hex digits. */
interface HashJob {
  kind: 'hash'
  bytes: Uint8Array
}

/** SHA-256(0x01 ‖ left ‖ right) of two hashes (RFC 6962, 2.1). All have 64 hex digits. */
interface NodeJob {
  kind: 'node'
  left: string
  right: string
}

/** Verification by RFC 8032, 5.1.7, without the cofactor, of a signature that has passed `mayVerify`. */
interface SignatureJob {
  kind: 'signature'
  /** 64 hex digits. */
  publicKey: string
  message: Uint8Array
  /** 128 hex digits. */
  signature: string
}

/** A running check, which yields jobs and returns its result. */
export type Check<T> = Generator<Job, T, string | boolean>

/** Computes jobs synchronously. */
export interface SyncJobs {
  hash(bytes: Uint8Array): string
  node(left: string, right: string): string
  verify(job: SignatureJob): boolean
}

/** Computes jobs asynchronously. */
export interface AsyncJobs {
  hash(bytes: Uint8Array): Promise<string>
  node(left: string, right: string): Promise<string>
  verify(job: SignatureJob): Promise<boolean>
}

export function runSync<T>(check: Check<T>, jobs: SyncJobs): T {
  let step = check.next()
  while (step.done !== true) step = check.next(answer(step.value, jobs))
  return step.value
}

/** Runs a check asynchronously, one job after another. */
export async function runAsync<T>(check: Check<T>, jobs: AsyncJobs): Promise<T> {
  let step = check.next()
  while (step.done !== true) step = check.next(await answer(step.value, jobs))
  return step.value
}

function answer(job: Job, jobs: SyncJobs): string | boolean
function answer(job: Job, jobs: AsyncJobs): Promise<string | boolean>
function answer(job: Job, jobs: SyncJobs | AsyncJobs): string | boolean | Promise<string | boolean> {
  if (job.kind === 'hash') return jobs.hash(job.bytes)
  return job.kind === 'node' ? jobs.node(job.left, job.right) : jobs.verify(job)
}

/** The SHA-256 of bytes, 64 hex digits. */
export function* hashOf(bytes: Uint8Array): Check<string> {
  return hex(yield { kind: 'hash', bytes })
}

/** The hash of an inner node of a tree, 64 hex digits. */
export function* nodeOf(left: string, right: string): Check<string> {
  return hex(yield { kind: 'node', left, right })
}

export function hex(result: string | boolean): string {
  if (typeof result !== 'string') throw new TypeError('Expected a hash as the result of the job')
  return result
}
