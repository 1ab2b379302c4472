import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { between } from '../../../scripts/crash-loop/seeded-random.mjs'
import type { DiskCall } from './disk-trace.js'

/** Returns a random number from 0 to below 1. */
type Random = () => number

/** The bytes that a disk writes atomically. LMDB relies on the same size for its meta pages. */
const SECTOR_BYTES = 512

type Change = { number: number } & ({ at: number; bytes: Buffer } | { length: number })

/** A file: its content that is certainly on disk, and the later changes, in order. */
interface FileNode {
  kind: 'file'
  synced: Buffer
  pending: Change[]
}

/** A directory: the names that are certainly on disk, all current names, and the changes between them. */
interface DirectoryNode {
  kind: 'directory'
  synced: Map<string, DiskNode>
  names: Map<string, DiskNode>
  pending: { number: number; changes: [name: string, node: DiskNode | undefined][] }[]
}

type DiskNode = FileNode | DirectoryNode

/**
 * A simulated directory that distinguishes changes that are certainly on disk from those that are only in the
 * machine's memory. A loss of power preserves the former and a random part of the latter: any sectors of the
 * writes to a file since its last sync, and the changes of a directory's names since its last sync up to a
 * random one.
 */
export class DiskImage {
  readonly #path: string
  readonly #root: DirectoryNode
  readonly #files = new Map<bigint, DiskNode>()

  /** @param path the directory, whose content counts as synced */
  constructor(path: string) {
    this.#path = path
    this.#root = readDirectory(path)
  }

  /** Applies the calls of a trace to the image. */
  replay(calls: Iterable<DiskCall>): void {
    for (const call of calls) this.#replay(call)
  }

  /** Writes the state after a loss of power into a new directory. */
  writeAfterPowerLoss(target: string, random: Random): void {
    writeDirectory(target, this.#root, random)
  }

  /** Writes all changes into a new directory: the state after a kill, when the machine continues to run. */
  writeAfterKill(target: string): void {
    writeAll(target, this.#root)
  }

  #replay(call: DiskCall): void {
    switch (call.kind) {
      case 'opened': {
        const { directory, name } = this.#locate(call.path)
        let node = name === '' ? directory : directory.names.get(name)
        if (node === undefined) {
          node = call.directory ? emptyDirectory() : { kind: 'file', synced: Buffer.alloc(0), pending: [] }
          rename(directory, call.number, [[name, node]])
        }
        this.#files.set(call.file, node)
        return
      }
      case 'write':
        this.#fileOf(call.file).pending.push({ number: call.number, at: call.at, bytes: call.bytes })
        return
      case 'truncate':
        this.#fileOf(call.file).pending.push({ number: call.number, length: call.length })
        return
      case 'written':
        persistWrite(this.#fileOf(call.file), call.of)
        return
      case 'synced': {
        const node = this.#files.get(call.file)
        if (node !== undefined) persistUpTo(node, call.of)
        return
      }
      case 'sync':
        return
      case 'mkdir': {
        const { directory, name } = this.#locate(call.path)
        rename(directory, call.number, [[name, emptyDirectory()]])
        return
      }
      case 'remove': {
        const { directory, name } = this.#locate(call.path)
        rename(directory, call.number, [[name, undefined]])
        return
      }
      case 'rename': {
        const { directory, name } = this.#locate(call.from)
        const to = this.#locate(call.to)
        if (to.directory !== directory) throw new Error('Expected a rename within one directory')
        rename(directory, call.number, [
          [name, undefined],
          [to.name, directory.names.get(name)],
        ])
      }
    }
  }

  #locate(path: string): { directory: DirectoryNode; name: string } {
    const within = relative(this.#path, path)
    if (within === '') return { directory: this.#root, name: '' }
    let directory = this.#root
    for (const name of dirname(within).split(sep)) {
      if (name === '.') continue
      const next = directory.names.get(name)
      if (next?.kind !== 'directory') throw new Error(`Expected a directory on the way to ${path}`)
      directory = next
    }
    return { directory, name: basename(within) }
  }

  #fileOf(file: bigint): FileNode {
    const node = this.#files.get(file)
    if (node?.kind !== 'file') throw new Error('Expected a file that was opened')
    return node
  }
}

function emptyDirectory(): DirectoryNode {
  return { kind: 'directory', synced: new Map(), names: new Map(), pending: [] }
}

function readDirectory(path: string): DirectoryNode {
  const node = emptyDirectory()
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const at = join(path, entry.name)
    const child: DiskNode = entry.isDirectory()
      ? readDirectory(at)
      : { kind: 'file', synced: readFileSync(at), pending: [] }
    node.names.set(entry.name, child)
    node.synced.set(entry.name, child)
  }
  return node
}

function rename(
  directory: DirectoryNode,
  number: number,
  changes: [name: string, node: DiskNode | undefined][],
): void {
  apply(directory.names, changes)
  directory.pending.push({ number, changes })
}

function apply(
  names: Map<string, DiskNode>,
  changes: readonly [name: string, node: DiskNode | undefined][],
): void {
  for (const [name, node] of changes) {
    if (node === undefined) names.delete(name)
    else names.set(name, node)
  }
}

/** Marks the changes before entry `number` as certainly on disk. */
function persistUpTo(node: DiskNode, number: number): void {
  if (node.kind === 'directory') {
    for (const { changes } of node.pending.filter((one) => one.number < number)) apply(node.synced, changes)
    node.pending = node.pending.filter((one) => one.number > number)
    return
  }
  for (const change of node.pending) {
    if (change.number < number) node.synced = changed(node.synced, change)
  }
  node.pending = node.pending.filter((one) => one.number > number)
}

/** Marks a single write as certainly on disk; earlier ones stay pending. */
function persistWrite(node: FileNode, number: number): void {
  const write = node.pending.find((one) => one.number === number)
  if (write === undefined || !('bytes' in write)) return
  node.synced = changed(node.synced, write)
  node.pending = node.pending.filter((one) => one !== write)
  for (const other of node.pending) {
    if (other.number > number || !('bytes' in other)) continue
    const [from, to] = [Math.max(write.at, other.at), Math.min(endOf(write), endOf(other))]
    if (from >= to) continue
    other.bytes = Buffer.from(other.bytes)
    write.bytes.copy(other.bytes, from - other.at, from - write.at, to - write.at)
  }
}

function endOf({ at, bytes }: { at: number; bytes: Buffer }): number {
  return at + bytes.length
}

function changed(content: Buffer, change: Change): Buffer {
  if ('length' in change) return resized(content, change.length)
  const target = endOf(change) > content.length ? resized(content, endOf(change)) : content
  change.bytes.copy(target, change.at)
  return target
}

function resized(content: Buffer, length: number): Buffer {
  const target = Buffer.alloc(length)
  content.copy(target)
  return target
}

function writeDirectory(path: string, node: DirectoryNode, random: Random): void {
  mkdirSync(path, { mode: 0o700 })
  const names = new Map(node.synced)
  const choice = Math.floor(random() * 3)
  const count = [0, node.pending.length, between(random, 0, node.pending.length)][choice] ?? 0
  for (const { changes } of node.pending.slice(0, count)) apply(names, changes)
  for (const [name, child] of names) {
    const at = join(path, name)
    if (child.kind === 'directory') writeDirectory(at, child, random)
    else writeFileSync(at, afterLoss(child, random), { mode: 0o600 })
  }
}

function writeAll(path: string, { names }: DirectoryNode): void {
  mkdirSync(path, { mode: 0o700 })
  for (const [name, node] of names) {
    const at = join(path, name)
    if (node.kind === 'directory') writeAll(at, node)
    else writeFileSync(at, node.pending.reduce(changed, Buffer.from(node.synced)), { mode: 0o600 })
  }
}

/** The content of a file after a loss of power: all synced bytes, and random sectors of each later change. */
function afterLoss({ synced, pending }: FileNode, random: Random): Buffer {
  let content: Buffer = Buffer.from(synced)
  const share = [0, 1, 0.1, 0.5, 0.9][between(random, 0, 4)] ?? 0
  for (const change of pending) {
    if ('length' in change) {
      if (random() < share) content = changed(content, change)
      continue
    }
    for (let at = change.at; at < endOf(change);) {
      const next = Math.min(endOf(change), (Math.floor(at / SECTOR_BYTES) + 1) * SECTOR_BYTES)
      const bytes = change.bytes.subarray(at - change.at, next - change.at)
      if (random() < share) content = changed(content, { number: change.number, at, bytes })
      at = next
    }
  }
  return content
}
