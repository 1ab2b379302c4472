/**
 * The thread of a probe (probe.ts): asks a server without a pause in between, one request at a time, and tells how much
 * processor time the threads of the server used while each was waiting. That time says how long a thread was busy with
 * something else, however much the machine was busy with other things.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

const { url, pid, rootKey, agents } = workerData
const connection = new Agent({ keepAlive: true, maxSockets: 1 })
const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }

/** Milliseconds of processor time that a thread of the server has used. */
function usedMs(thread) {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6
  } catch {
    return 0
  }
}

/** Memory that is resident and the process's own, bytes; 0 when it is gone. */
function memoryBytes() {
  try {
    return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  } catch {
    return 0
  }
}

function ask(method, path, body) {
  return new Promise((resolve) => {
    const sent = request(url + path, { method, agent: connection, headers }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
      response.on('error', () => resolve(0))
    })
    sent.on('error', () => resolve(0))
    sent.end(body)
  })
}

const write = (agent) => ask('POST', `/v1/collections/${agent}/records`, '{"data":{"probe":true}}')

/** The threads that decide the writes of the probe's agents. */
async function shardThreads() {
  const found = new Set()
  for (const agent of agents) {
    await write(agent)
    const threads = readdirSync(`/proc/${pid}/task`).filter((thread) => thread !== String(pid))
    const before = threads.map(usedMs)
    for (let n = 0; n < 50; n++) await write(agent)
    const used = threads.map((thread, index) => usedMs(thread) - before[index])
    found.add(threads[used.indexOf(Math.max(...used))])
  }
  return [...found]
}

const shards = await shardThreads()
const seen = { frontMs: 0, shardMs: 0, memoryBytes: 0, asked: 0, failed: [] }
const state = { done: false }
parentPort.on('message', () => (state.done = true))
parentPort.postMessage({ ready: memoryBytes() })

while (!state.done) {
  const front = String(pid)
  const before = usedMs(front)
  let startedMs = performance.now()
  const health = await ask('GET', '/healthz')
  seen.frontMs = Math.max(seen.frontMs, Math.min(usedMs(front) - before, performance.now() - startedMs))
  const agent = agents[seen.asked % agents.length]
  const shardsBefore = shards.map(usedMs)
  startedMs = performance.now()
  const written = await write(agent)
  const waitedMs = performance.now() - startedMs
  for (const [index, thread] of shards.entries()) {
    seen.shardMs = Math.max(seen.shardMs, Math.min(usedMs(thread) - shardsBefore[index], waitedMs))
  }
  if (health !== 200) seen.failed.push(`healthz ${health}`)
  if (written !== 201) seen.failed.push(`write ${written}`)
  seen.asked++
  seen.memoryBytes = Math.max(seen.memoryBytes, memoryBytes())
  await pause(2)
}
connection.destroy()
parentPort.postMessage({ seen })
parentPort.close()
