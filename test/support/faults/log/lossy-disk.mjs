/**
 * Stands between a store and the files of its log, in the process of the test: knows which bytes were synced, and what a
 * loss of power would leave of the rest. Has to be loaded before any module that imports `node:fs`.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { between } from '../../../../scripts/crash-loop/seeded-random.mjs'

const SECTOR_BYTES = 512
const LOG_FILE = /\/log\/\d+\.log(?:\.tmp)?$/

/** What `cutBefore` has reached: the power is gone, and nothing more is done. */
export class PowerCut extends Error {}

/** @typedef {{ at: number, bytes: Buffer }} Write */
/** @typedef {{ synced: Buffer, pending: Write[] }} LogFile */

const real = { ...fs }
/** @type {Map<string, LogFile>} */
let files = new Map()
/** @type {Map<number, string>} paths of all open descriptors */
let open = new Map()
/** @type {(() => void)[]} */
let syncs = []
let callsLeft = Infinity

/** Counts a step at which the power may go. */
export function step() {
  callsLeft -= 1
  if (callsLeft < 0) throw new PowerCut('The power is gone')
}

/** Has the power go before a step from now on. */
export function cutBefore(steps) {
  callsLeft = steps
}

/** Syncs that were asked for and have not returned. */
export function syncsUnderWay() {
  return syncs.length
}

/** Lets the first sync return that is under way. */
export function finishSync() {
  syncs.shift()?.()
}

/** Writes that no sync has covered, of all files. @returns {Buffer[]} */
export function unsynced() {
  return [...files.values()].flatMap(({ pending }) => pending.map(({ bytes }) => bytes))
}

/** Whether any byte that may be on the disk holds a text. */
export function holds(text) {
  return [...files.values()].some(
    ({ synced, pending }) => synced.includes(text) || pending.some(({ bytes }) => bytes.includes(text)),
  )
}

/** Forgets the machine that has lost its power, and writes what its disk has of the log to another directory. */
export function leave(to, random) {
  callsLeft = Infinity
  syncs = []
  real.mkdirSync(`${to}/log`, { recursive: true })
  const left = [...files].map(([path, file]) => [
    `${to}${path.slice(path.lastIndexOf('/log/'))}`,
    leftOf(file, random),
  ])
  for (const fd of open.keys()) real.closeSync(fd)
  for (const [path, bytes] of left) real.writeFileSync(path, bytes)
  // Writing has opened them, too.
  open = new Map()
  files = new Map()
}

/** All that is synced, and of the rest any sectors, each by itself, or the last write alone. */
function leftOf({ synced, pending }, random) {
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

function fileOf(fd) {
  return files.get(open.get(fd) ?? '')
}

function settle(file, writes) {
  const end = writes.reduce((most, { at, bytes }) => Math.max(most, at + bytes.length), 0)
  if (end > file.synced.length) file.synced = Buffer.concat([file.synced], end)
  for (const { at, bytes } of writes) bytes.copy(file.synced, at)
  const settled = new Set(writes)
  file.pending = file.pending.filter((one) => !settled.has(one))
}

fs.openSync = (path, ...more) => {
  const fd = real.openSync(path, ...more)
  open.set(fd, path)
  if (!LOG_FILE.test(path) || files.has(path)) return fd
  const file = { synced: Buffer.alloc(0), pending: [] }
  files.set(path, file)
  // Reading opens it, too.
  file.synced = real.readFileSync(path)
  return fd
}
fs.closeSync = (fd) => {
  open.delete(fd)
  real.closeSync(fd)
}
fs.writeSync = (fd, ...write) => {
  const [bytes, offset, length, at] = write
  const file = fileOf(fd)
  if (file !== undefined) {
    step()
    file.pending.push({ at, bytes: Buffer.from(bytes.subarray(offset, offset + length)) })
  }
  return real.writeSync(fd, ...write)
}
fs.fdatasyncSync = (fd) => {
  step()
  const file = fileOf(fd)
  if (file !== undefined) settle(file, file.pending)
}
fs.fdatasync = (fd, then) => {
  const file = fileOf(fd)
  const writes = [...(file?.pending ?? [])]
  syncs.push(() => {
    // Others may have been synced since, and overwritten.
    const pending = new Set(file?.pending)
    if (file !== undefined)
      settle(
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
// Directories: that their names are on disk when this returns is what test/faults/power-loss.slow.test.ts looks at.
fs.fsyncSync = () => {}
syncBuiltinESMExports()
