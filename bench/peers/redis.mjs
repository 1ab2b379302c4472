import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { recordBody } from '../records.mjs'
import { findProgram, freePort, programVersion, runProgram, startProgram } from './programs.mjs'

const STREAMS = 100
const PIPELINE_CLIENTS = 16
const PIPELINED = 64
/** redis-benchmark counts requests, not seconds: the rate that the first turn, which warms up, assumes. */
const GUESSED_PER_SECOND = { single: 3_000, many: 40_000 }
const POLL_MS = 20

const countEntries = `local n = 0
for _, key in ipairs(redis.call('KEYS', 'stream:*')) do n = n + redis.call('XLEN', key) end
return n`

/**
 * Redis streams with an append-only file that is fsynced before the answer, loaded by redis-benchmark.
 * @type {import('./peer.mjs').Peer}
 */
export const redis = {
  name: 'Redis',
  kinds: ['writes', 'bulk'],
  missing() {
    const names = ['redis-server', 'redis-benchmark', 'redis-cli'].filter((name) => !findProgram(name))
    return names.length === 0 ? undefined : `no ${names.join(', ')}`
  },
  async start({ directory }, kind) {
    const server = await startRedis(join(directory, `redis-${kind}`))
    const version = programVersion(findProgram('redis-server'), /v=(\S+)/)
    const note = 'on disk before the answer, all data in memory as well; no signature, no chain'
    const singles = ({ connections }) => [
      {
        name: 'Redis stream',
        role: 'peer',
        note: `redis-benchmark, XADD, appendfsync always; ${note}`,
        measure: adds(server, { connections, pipelined: 1 }),
      },
    ]
    const bulk = () => [
      {
        name: `Redis stream, ${PIPELINE_CLIENTS} clients, ${PIPELINED} pipelined`,
        role: 'peer',
        note: `redis-benchmark, XADD, appendfsync always; ${note}`,
        measure: adds(server, { connections: PIPELINE_CLIENTS, pipelined: PIPELINED }),
      },
    ]
    return { version, contenders: kind === 'writes' ? singles : bulk, stop: server.stop }
  },
}

async function startRedis(directory) {
  mkdirSync(directory)
  const port = String(await freePort())
  // There are no snapshots, and the file is rewritten only between turns.
  const settings = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always']
  const quiet = ['--auto-aof-rewrite-percentage', '0', '--bind', '127.0.0.1', '--port', port]
  const server = await startProgram(
    [findProgram('redis-server'), ...settings, ...quiet, '--dir', directory],
    {
      ready: /Ready to accept connections/,
      signal: 'SIGTERM',
    },
  )
  const cli = (...args) => runProgram(findProgram('redis-cli'), ['-p', port, ...args])
  return { port, cli, stop: server.stop }
}

function adds({ port, cli }, { connections, pipelined }) {
  let perSecond = connections === 1 ? GUESSED_PER_SECOND.single : GUESSED_PER_SECOND.many
  return async (seconds) => {
    // redis-benchmark only sends full pipelines.
    const requests = Math.ceil((perSecond * seconds) / pipelined) * pipelined
    const load = ['-n', `${requests}`, '-c', `${connections}`, '-P', `${pipelined}`, '-r', `${STREAMS}`]
    const add = ['XADD', 'stream:__rand_int__', '*', 'data', JSON.stringify(recordBody(1))]
    const output = await runProgram(findProgram('redis-benchmark'), ['-p', port, '--csv', ...load, ...add])
    const entries = Number(await cli('EVAL', countEntries, '0'))
    if (entries !== requests) throw new Error(`${requests} entries were acknowledged and ${entries} found`)
    await empty(cli)
    const result = readBenchmark(output)
    perSecond = result.value
    return result
  }
}

/** Deletes all data, rewrites the file and waits for the rewrite. */
async function empty(cli) {
  await cli('FLUSHALL', 'SYNC')
  await cli('BGREWRITEAOF')
  while (!/aof_rewrite_in_progress:0\s+aof_rewrite_scheduled:0/.test(await cli('INFO', 'persistence')))
    await pause(POLL_MS)
}

/** Reads the line of values after the line of names. */
function readBenchmark(output) {
  const [names, values] = output
    .split('\n')
    .filter((line) => line.startsWith('"'))
    .slice(-2)
    .map((line) => line.split('","').map((cell) => cell.replaceAll('"', '')))
  const figure = (name) => Number(values?.[values.length - names.length + names.indexOf(name)])
  const turn = {
    value: figure('rps'),
    p50Ms: figure('p50_latency_ms'),
    p99Ms: figure('p99_latency_ms'),
  }
  if (!(turn.value > 0)) throw new Error(`Expected a result of redis-benchmark, got: ${output}`)
  return turn
}
