import { cpSync } from 'node:fs'
import { basename } from 'node:path'
import { controlFile } from '../../../src/data/backup/control.js'

/**
 * Copies a data directory like `cp -a`, but without the socket that a killed server has left, since Node copies
 * no sockets.
 */
export function copyData(from: string, to: string): void {
  const filter = (path: string) => basename(path) !== controlFile
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, filter })
}
