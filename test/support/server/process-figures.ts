import { readdirSync, readFileSync } from 'node:fs'
import type { TestServer } from './server.js'

/** Open files and sockets of the server's process (Linux). */
export function openHandles({ process: { pid } }: TestServer): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Memory of the server's process that is resident and its own, bytes (Linux): mapped files are not counted. */
export function memoryBytes({ process: { pid } }: TestServer): number {
  const kibibytes = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kibibytes) * 1024
}
