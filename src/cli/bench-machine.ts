import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { keyPairFromSeed, seedBytes, signText } from '../strand/keys.js'

/** Bytes of one synchronised write, as of a small commit. */
const SYNC_BYTES = 4096

/** A text as long as a record's header, which is what a signature covers. */
const headerText = 'strand-record/v1\n'.padEnd(350, 'x')

/** Signatures between two reads of the clock. */
const SIGN_BURST = 256

/** Writes of 4 KiB a second to the disk of `directory`, each synchronised before the next. */
export function syncRate(directory: string, durationMs: number): number {
  const file = join(directory, 'bench-sync.tmp')
  const bytes = Buffer.alloc(SYNC_BYTES, 1)
  const fd = openSync(file, 'wx', 0o600)
  try {
    return ratePerSecond(durationMs, () => {
      writeSync(fd, bytes)
      fdatasyncSync(fd)
      return 1
    })
  } finally {
    closeSync(fd)
    rmSync(file, { force: true })
  }
}

/** Ed25519 signatures a second on one core, each of a text as long as a record's header. */
export function signRate(durationMs: number): number {
  const { secretKey } = keyPairFromSeed(Buffer.alloc(seedBytes, 7))
  return ratePerSecond(durationMs, () => {
    for (let count = 0; count < SIGN_BURST; count++) signText(secretKey, headerText)
    return SIGN_BURST
  })
}

/** The rate per second of what `step` counts. */
function ratePerSecond(durationMs: number, step: () => number): number {
  const startMs = performance.now()
  let done = 0
  let elapsedMs = 0
  while (elapsedMs < durationMs) {
    done += step()
    elapsedMs = performance.now() - startMs
  }
  return (done / elapsedMs) * 1000
}
