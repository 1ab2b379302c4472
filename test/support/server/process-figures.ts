import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { RawConnection } from '../http/raw-http.js'
import type { TestServer } from './server.js'

/**
 * Open files and sockets of the server's process (Linux), without log files, whose number depends on the
 * largest amount between two flushes and which stay open for reuse.
 */
export function openHandles({ process: { pid } }: TestServer): number {
  return openFiles(pid).filter((link) => !/\/log\/\d+\.log/.test(link)).length
}

/** Anonymous resident memory of the server's process, bytes (Linux), without mapped files. */
export function memoryBytes({ process: { pid } }: TestServer): number {
  const kibibytes = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kibibytes) * 1024
}

/**
 * The number of these connections that the server has accepted and holds open (Linux). Other connections, and
 * those that only the system has accepted, are not counted.
 */
export function heldConnections(
  { process: { pid }, url }: TestServer,
  connections: readonly RawConnection[],
): number {
  const held = new Set(openFiles(pid).flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  const ports = new Map<number, string>()
  for (const table of ['tcp', 'tcp6']) {
    for (const line of readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n').slice(1)) {
      const [, local, remote, , , , , , , inode = ''] = line.trim().split(/\s+/)
      if (portOf(local) === Number(new URL(url).port)) ports.set(portOf(remote), inode)
    }
  }
  return connections.filter(({ port }) => held.has(ports.get(port) ?? '')).length
}

function openFiles(pid: number | undefined): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((file) => linkOf(`/proc/${pid}/fd/${file}`))
}

/** The target of a file descriptor; empty if it was closed in the meantime. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

function portOf(address = ''): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16)
}
