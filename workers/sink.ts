import { join } from 'node:path'
import { getPriority, setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { assert, unreachable } from '../src/base/assert.js'
import { systemClock } from '../src/base/clock.js'
import { limits } from '../src/base/limits/limits.js'
import { createLogger } from '../src/base/log.js'
import { connectPostgres } from '../src/outbound/postgres.js'
import { isSinkSettings, type SinkOrder } from '../src/protocol/sink-messages.js'
import { SinkLog } from './sink/log.js'
import { SinkRun } from './sink/run.js'
import { openEnvironment } from './store/open-environment.js'

/*
 * The thread of the PostgreSQL sink. It reads the shards' stores through a read-only view, and reports its
 * metrics to the front thread (docs/adr/0013-postgres-sink.md).
 */

assert(!isMainThread && parentPort !== null, 'the sink runs in a worker thread')
const port = parentPort
const data: unknown = workerData
assert(isSinkSettings(data), 'the sink receives its settings')
const settings = data
// Linux sets the priority of this thread only; other systems would set that of the whole process.
const NICE = 10
if (process.platform === 'linux') setPriority(Math.max(NICE, getPriority()))

const logs = Array.from(
  { length: settings.shards },
  (_none, shard) =>
    new SinkLog(shard, () => openEnvironment(join(settings.dataDir, `shard-${shard}`), 'read')),
)
for (const shard of settings.paused) void logs[shard]?.pause()
const sink = new SinkRun({
  logs,
  connect: (breakOff) => connectPostgres(settings, breakOff),
  clock: systemClock,
  chance: Math.random,
  sleep: (ms, signal) => pause(ms, undefined, { signal }).catch(() => {}),
  log: createLogger(settings.logLevel, 'sink'),
})
const pollTimer = setInterval(() => {
  sink.countNew()
  port.postMessage(sink.figures())
}, limits.sinkPollMs)

port.on('message', (order: SinkOrder) => {
  switch (order.kind) {
    case 'pause':
      void logs[order.shard]?.pause()
      return
    case 'resume':
      logs[order.shard]?.resume()
      return
    case 'stop':
      sink.stop()
      setTimeout(() => sink.abort(), limits.sinkStopMs).unref()
      return
    default:
      unreachable(order)
  }
})

await sink.run()
clearInterval(pollTimer)
port.close()
for (const log of logs) await log.pause()
