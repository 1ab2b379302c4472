/**
 * Wraps the file system for a store and the files of its log, in the process of the test. It tracks which
 * bytes were synced, and simulates which of the others survive a loss of power. Must be loaded before any
 * module that imports `node:fs`.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { between } from '../../../../scripts/crash-loop/seeded-random.mjs'

const SECTOR_BYTES = 512
const LOG_FILE = /\/log\/\d+\.log(?:\.tmp)?$/

/** The step of `cutBefore` was reached: the power is cut, and nothing more is done. */
export class PowerCut extends Error {}

/** @typedef {{ at: number, bytes: Buffer }} Write */
/** @typedef {{ synced: Buffer, pending: Write[] }} LogFile */

const real = { ...fs }
/** @type {Map<string, LogFile>} */
let files = new Map()
/** @type {Map<number, string>} paths by open descriptor */
let open = new Map()
/** @type {Set<number>} descriptors whose writes are synced */
let synchronous = new Set()
/** @type {(() => void)[]} */
let syncs = []
let callsLeft = Infinity
let isDirectRefused = false

/** Counts a step at which the power may be cut. */
export function step() {
  callsLeft -= 1
  if (callsLeft < 0) throw new PowerCut('The power is cut')
}

/** Whether the file system supports direct writes; otherwise all segments go through the cache. */
export function supportDirectWrites(isSupported) {
  isDirectRefused = !isSupported
}

/** Cuts the power after so many steps. */
export function cutBefore(steps) {
  callsLeft = steps
}

/** The number of syncs in progress. */
export function syncsUnderWay() {
  return syncs.length
}

/** Completes the first sync in progress. */
export function finishSync() {
  syncs.shift()?.()
}

/** The writes to all files that were not synced. @returns {Buffer[]} */
export function unsynced() {
  return [...files.values()].flatMap(({ pending }) => pending.map(({ bytes }) => bytes))
}

/** Whether any file may contain a text. */
export function holds(text) {
  return [...files.values()].some(
    ({ synced, pending }) => synced.includes(text) || pending.some(({ bytes }) => bytes.includes(text)),
  )
}

/**
 * Resets the simulation after a loss of power, and writes the surviving state of the log to another
 * directory.
 */
export function leave(to, random) {
  callsLeft = Infinity
  syncs = []
  real.mkdirSync(`${to}/log`, { recursive: true })
  const left = [...files].map(([path, file]) => [
    `${to}${path.slice(path.lastIndexOf('/log/'))}`,
    afterLoss(file, random),
  ])
  for (const fd of open.keys()) real.closeSync(fd)
  for (const [path, bytes] of left) real.writeFileSync(path, bytes)
  // The writes have opened files, too.
  open = new Map()
  synchronous = new Set()
  files = new Map()
}

/**
 * The content of a file after a loss of power: all synced bytes, and random sectors of the others or only the
 * last write.
 */
function afterLoss({ synced, pending }, random) {
  const content = Buffer.from(synced)
  const share = [0, 1, 0.5, 0.9, 'last'][between(random, 0, 4)] ?? 0
  if (share === 'last') {
    const last = pending.at(-1)
    last?.bytes.copy(content, last.at)
    return content
  }
  for (const { at, bytes } of pending) {
    for (let from = 0; from < bytes.length; from += SECTOR_BYTES)
      if (random() < share) bytes.copy(content, at + from, from, Math.min(bytes.length, from + SECTOR_BYTES))
  }
  return content
}

function unsupported() {
  return Object.assign(new Error('Not supported'), { code: 'EINVAL', syscall: 'open' })
}

function fileOf(fd) {
  return files.get(open.get(fd) ?? '')
}

function persist(file, writes) {
  const end = writes.reduce((most, { at, bytes }) => Math.max(most, at + bytes.length), 0)
  if (end > file.synced.length) file.synced = Buffer.concat([file.synced], end)
  for (const { at, bytes } of writes) bytes.copy(file.synced, at)
  const persisted = new Set(writes)
  file.pending = file.pending.filter((one) => !persisted.has(one))
}

fs.openSync = (path, ...more) => {
  const [flags] = more
  const { O_DIRECT, O_DSYNC } = real.constants
  const has = (flag) => typeof flags === 'number' && (flags & flag) !== 0
  if (isDirectRefused && has(O_DIRECT)) throw unsupported()
  const fd = real.openSync(path, ...more)
  open.set(fd, path)
  if (has(O_DSYNC)) synchronous.add(fd)
  if (!LOG_FILE.test(path) || files.has(path)) return fd
  const file = { synced: Buffer.alloc(0), pending: [] }
  files.set(path, file)
  // `readFileSync` opens the file, too.
  file.synced = real.readFileSync(path)
  return fd
}
fs.closeSync = (fd) => {
  open.delete(fd)
  synchronous.delete(fd)
  real.closeSync(fd)
}
fs.writeSync = (fd, ...write) => {
  const [bytes, offset, length, at] = write
  const file = fileOf(fd)
  if (file !== undefined) {
    step()
    const written = { at, bytes: Buffer.from(bytes.subarray(offset, offset + length)) }
    file.pending.push(written)
    if (synchronous.has(fd)) {
      step()
      persist(file, [written])
    }
  }
  return real.writeSync(fd, ...write)
}
fs.fdatasyncSync = (fd) => {
  step()
  const file = fileOf(fd)
  if (file !== undefined) persist(file, file.pending)
}
fs.fdatasync = (fd, then) => {
  const file = fileOf(fd)
  const writes = [...(file?.pending ?? [])]
  syncs.push(() => {
    // Some writes may have been synced and overwritten in the meantime.
    const pending = new Set(file?.pending)
    if (file !== undefined)
      persist(
        file,
        writes.filter((one) => pending.has(one)),
      )
    then(null)
  })
}
fs.renameSync = (from, to) => {
  step()
  real.renameSync(from, to)
  const file = files.get(from)
  if (file === undefined) return
  files.delete(from)
  files.set(to, file)
  for (const [fd, path] of open) if (path === from) open.set(fd, to)
}
fs.rmSync = (path, ...more) => {
  files.delete(path)
  real.rmSync(path, ...more)
}
// Syncs of directories are tested by test/faults/power-loss.slow.test.ts.
fs.fsyncSync = () => {}
syncBuiltinESMExports()
