import { readFileSync } from 'node:fs'

/** A call that test/faults/shim/disk-shim.c has traced. `number` is its position in the trace. */
export type DiskCall =
  | { kind: 'opened'; number: number; file: bigint; path: string; created: boolean; directory: boolean }
  | { kind: 'write'; number: number; file: bigint; at: number; bytes: Buffer }
  /** A write that returned when it was on disk: `of` is its number. */
  | { kind: 'written'; number: number; file: bigint; of: number }
  | { kind: 'truncate'; number: number; file: bigint; length: number }
  | { kind: 'sync'; number: number; file: bigint }
  /** A sync that returned: all writes before its beginning, the entry `of`, are on disk. */
  | { kind: 'synced'; number: number; file: bigint; of: number }
  | { kind: 'mkdir'; number: number; path: string }
  | { kind: 'rename'; number: number; from: string; to: string }
  | { kind: 'remove'; number: number; path: string }

const ENTRY_BYTES = 32
const CREATED = 1
const DIRECTORY = 2

/** Reads a trace. An incomplete last entry is ignored, because the kill came before its call. */
export function readTrace(file: string): DiskCall[] {
  const trace = readFileSync(file)
  const calls: DiskCall[] = []
  for (let at = 0; at + ENTRY_BYTES <= trace.length;) {
    const pathsAt = at + ENTRY_BYTES
    const bytesAt = pathsAt + trace.readUInt16LE(at + 28)
    const end = bytesAt + trace.readUInt32LE(at + 24)
    if (end > trace.length) break
    const paths = trace.subarray(pathsAt, bytesAt).toString().split('\0')
    calls.push(callOf(trace.subarray(at, pathsAt), paths, trace.subarray(bytesAt, end)))
    at = end
  }
  return calls
}

function callOf(entry: Buffer, [path = '', to = '']: string[], bytes: Buffer): DiskCall {
  const number = Number(entry.readBigUInt64LE(0))
  const file = entry.readBigUInt64LE(8)
  const offset = Number(entry.readBigUInt64LE(16))
  const flags = entry[31] ?? 0
  switch (entry[30]) {
    case 1: {
      const [created, directory] = [(flags & CREATED) !== 0, (flags & DIRECTORY) !== 0]
      return { kind: 'opened', number, file, path, created, directory }
    }
    case 2:
      return { kind: 'write', number, file, at: offset, bytes }
    case 3:
      return { kind: 'written', number, file, of: offset }
    case 4:
      return { kind: 'truncate', number, file, length: offset }
    case 5:
      return { kind: 'sync', number, file }
    case 6:
      return { kind: 'synced', number, file, of: offset }
    case 7:
      return { kind: 'mkdir', number, path }
    case 8:
      return { kind: 'rename', number, from: path, to }
    case 9:
      return { kind: 'remove', number, path }
    default:
      throw new Error(`Expected an entry of a trace, got kind ${entry[30]}`)
  }
}
