import { fork, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { once } from 'node:events'

/** Characters of standard error that a failure shows. */
const STDERR_CHARS = 2_000
const START_MS_MAX = 60_000
const STOP_MS_MAX = 30_000

/** Child processes that still run when the bench ends by a signal or a fault; they must not outlive it. */
const running = new Set()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/**
 * Kills a child process when this process exits, unless the child has already exited.
 * @param {import('node:child_process').ChildProcess} child
 */
export function killAtExit(child) {
  running.add(child)
  child.once('exit', () => running.delete(child))
}

/**
 * A server in a separate process.
 * @typedef {object} ServerProcess
 * @property {string} url
 * @property {number} pid
 * @property {number} startMs from its start to the line that names its address
 * @property {() => Promise<void>} kill sends SIGKILL and waits
 * @property {() => Promise<void>} stop sends SIGTERM and waits; throws when the process does not end with 0
 */

/**
 * Starts a server that prints `listening on URL` once it serves. Node gets the option that `npm start` has.
 * @param {string[]} args of node
 * @param {Record<string, string>} [env] added to the environment, from which every SERVICE_ setting is
 * removed
 * @returns {Promise<ServerProcess>}
 */
export async function startServer(args, env = {}) {
  const startedMs = performance.now()
  const child = spawn(process.execPath, ['--v8-pool-size=0', ...args], {
    env: { ...withoutSettings(process.env), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  killAtExit(child)
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr = (stderr + text).slice(-STDERR_CHARS)))
  const exited = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX)
  try {
    const url = await listeningUrl(child.stdout)
    if (url === undefined) throw new Error(`The server ended before it served: ${stderr}`)
    const startMs = performance.now() - startedMs
    const kill = async () => {
      child.kill('SIGKILL')
      await exited
    }
    return { url, pid: child.pid, startMs, kill, stop: () => stop(child, exited, () => stderr) }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Runs a script until it exits and returns the one message that it sends.
 * @template T
 * @param {URL} script
 * @param {unknown} task sent as the first message
 * @returns {Promise<T>}
 */
export async function runScript(script, task) {
  const child = fork(script, { env: withoutSettings(process.env), serialization: 'advanced' })
  killAtExit(child)
  child.send(task)
  const exited = once(child, 'exit')
  const answered = once(child, 'message')
  const first = await Promise.race([answered, exited.then(() => undefined)])
  if (first === undefined) throw new Error(`${script.pathname} ended without an answer`)
  await exited
  return first[0]
}

/**
 * The processes that a process has started and that still run.
 * @param {number} pid
 * @returns {number[]}
 * @throws {Error} when there is no such process, or no /proc
 */
export function childrenOf(pid) {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

async function listeningUrl(stdout) {
  for await (const line of createInterface({ input: stdout })) {
    const match = /^listening on (\S+)$/.exec(line)
    if (match !== null) return match[1]
  }
  return undefined
}

async function stop(child, exited, stderr) {
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
  const [code] = await exited
  clearTimeout(timer)
  if (code !== 0) throw new Error(`The server ended with ${code}: ${stderr()}`)
}

function withoutSettings(env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SERVICE_')))
}
