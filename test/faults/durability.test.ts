import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { constants, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isCaughtUp, numbersOf, openStream } from '../support/http/events.js'
import { eventually } from '../support/eventually.js'
import { leftOut } from '../support/faults/rounds.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

const missing = spawnSync('strace', ['-V']).status === 0 ? undefined : 'no strace'

/** Sequential writes, then simultaneous clients and the writes of each. */
const ALONE = 20
const CLIENTS = 8
const WRITES = 6

let server: TestServer
let directory: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-trace-'))
  server = await startServer({ dataDir: join(directory, 'data'), env: { SERVICE_SHARDS: '2' } })
})

afterEach(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** A system call of a thread: its text in the trace, and the lines at which it began and returned. */
interface SystemCall {
  thread: string
  text: string
  began: number
  ended: number
}

/** Traces the system calls of all threads of the server while `work` runs. */
async function traced(work: () => Promise<void>): Promise<SystemCall[]> {
  const file = join(directory, 'trace')
  const calls = 'trace=fdatasync,fsync,msync,read,recvfrom,write,pwrite64,writev,pwritev,sendto,sendmsg'
  const options = ['-f', '-qq', '-y', '-s', '100000', '-o', file, '-e', calls]
  const strace = spawn('strace', [...options, '-p', String(server.process.pid)])
  const ended = once(strace, 'exit')
  // strace attaches to one thread after another, so wait until it has attached to all.
  await eventually(() => {
    if (strace.exitCode !== null) throw new Error(`The tracer ended with ${strace.exitCode}`)
    return everyThreadIsTraced()
  })
  await work()
  strace.kill('SIGINT')
  await ended
  return systemCalls(readFileSync(file, 'latin1').trimEnd().split('\n'))
}

function everyThreadIsTraced(): boolean {
  const tasks = `/proc/${server.process.pid}/task`
  return readdirSync(tasks).every((task) =>
    /^TracerPid:\s+[1-9]/m.test(readIfThere(`${tasks}/${task}/status`)),
  )
}

/** The text of a file; empty if it is missing because the thread has ended. */
function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

/**
 * Parses a trace. A call that overlaps with calls of other threads is on two lines: its arguments, and its
 * result.
 */
function systemCalls(lines: readonly string[]): SystemCall[] {
  const calls: SystemCall[] = []
  const open = new Map<string, SystemCall>()
  for (const [line, text] of lines.entries()) {
    const thread = /^\d+/.exec(text)?.[0] ?? ''
    const resumed = /<\.\.\. \w+ resumed>/.test(text) ? open.get(thread) : undefined
    if (resumed !== undefined) {
      resumed.ended = line
      resumed.text += text
      open.delete(thread)
      continue
    }
    const made = { thread, text, began: line, ended: line }
    calls.push(made)
    if (!text.includes('<unfinished ...>')) continue
    made.ended = Infinity
    open.set(thread, made)
  }
  return calls
}

const storeFile = /^\d+\s+\w+\(\d+<[^>]*(data\.mdb|\/log\/\d+\.log)>/
const logFile = /^\d+\s+\w+\(\d+<([^>]*\/log\/\d+\.log)>/
const synced = /^\d+\s+fdatasync\(.* = 0$/s

/** Whether the descriptor of a call is opened so that a write returns when it is on disk (open(2), O_DSYNC). */
function isSynchronous({ text }: SystemCall): boolean {
  const [, fd = ''] = /^\d+\s+\w+\((\d+)</.exec(text) ?? []
  const [, flags = '0'] =
    /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/${server.process.pid}/fdinfo/${fd}`, 'utf8')) ?? []
  return (Number.parseInt(flags, 8) & constants.O_DSYNC) !== 0
}

/**
 * The line at which the segment with `marker` was on disk: it was written synchronously, or its file was synced
 * after it was written.
 */
function durableAt(calls: readonly SystemCall[], marker: string): number {
  const onLog = calls.filter(({ text }) => logFile.test(text))
  const segment = onLog.find(({ text }) => text.includes(marker) && !text.includes('fdatasync'))
  if (segment === undefined) throw new Error(`Expected ${marker} to be written`)
  if (isSynchronous(segment)) return segment.ended
  // The other shard syncs another file.
  const file = logFile.exec(segment.text)?.[1]
  const sync = onLog.find(
    ({ text, began }) => began > segment.ended && logFile.exec(text)?.[1] === file && synced.test(text),
  )
  if (sync === undefined) throw new Error(`Expected ${marker} to be synced`)
  return sync.ended
}

describe.skipIf(leftOut(missing))('answers and events', () => {
  it('are not sent before the segment of their record is on disk', async () => {
    const markers: string[] = []
    const write = async (n: number, client: number): Promise<void> => {
      const marker = `marker-${String(n).padStart(4, '0')}`
      markers.push(marker)
      const { status } = await call(server, `POST /v1/collections/traced-${client}/records`, {
        body: { data: { n, marker } },
        headers: { 'x-request-id': `request-of-${marker}` },
      })
      expect(status).toBe(201)
    }
    await call(server, 'POST /v1/collections/traced-0/records', { body: { data: { n: -1 } } })
    const stream = await openStream(server, '/v1/stream?since=0')
    await stream.until(isCaughtUp)
    const calls = await traced(async () => {
      for (let n = 0; n < ALONE; n++) await write(n, 0)
      const clients = Array.from({ length: CLIENTS }, async (_none, client) => {
        for (let n = 0; n < WRITES; n++) await write(ALONE + client * WRITES + n, client)
      })
      await Promise.all(clients)
      await stream.until((events) => numbersOf(events).length === markers.length + 1)
    })
    const sent = calls.filter(({ text }) => !storeFile.test(text) && /^\d+\s+(send|write)/.test(text))
    for (const marker of markers) {
      const durable = durableAt(calls, marker)
      // No log line contains the marker, so these are writes to sockets.
      const answers = sent.filter(({ text }) => text.includes(`request-of-${marker}`))
      const events = sent.filter(({ text }) => text.includes(`event: record`) && text.includes(marker))
      expect({ marker, answers: answers.length }).toEqual({ marker, answers: 1 })
      expect(events.length).toBeGreaterThan(0)
      for (const { began } of [...answers, ...events]) expect(began, marker).toBeGreaterThan(durable)
    }
  })
})
