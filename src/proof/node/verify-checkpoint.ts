import { runNow } from '../job.js'
import { type Checkpoint, verifyCheckpoint as check } from '../note.js'
import { jobs } from './jobs.js'

/** Reads a checkpoint that carries this key's signature; undefined when it does not. */
export function verifyCheckpoint(note: string, publicKey: string): Checkpoint | undefined {
  return runNow(check(note, publicKey), jobs)
}
