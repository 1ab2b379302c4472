import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { childrenOf, killAtExit } from '../child.mjs'

const OUTPUT_BYTES_MAX = 64 << 20
const READY_MS_MAX = 60_000

/**
 * Finds a program in some directories, then on the path.
 * @param {string} name
 * @param {string[]} [directories] searched first
 * @returns {string | undefined}
 */
export function findProgram(name, directories = []) {
  const onPath = (process.env.PATH ?? '').split(':').filter(Boolean)
  return [...directories, ...onPath]
    .map((directory) => join(directory, name))
    .find((path) => existsSync(path))
}

/**
 * The version of a package below bench/peers.
 * @param {string} name
 * @returns {string | undefined} undefined where it is not installed
 */
export function packageVersion(name) {
  const manifest = new URL(`node_modules/${name}/package.json`, import.meta.url)
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined
}

/**
 * The version that a program prints.
 * @param {string} path
 * @param {RegExp} pattern whose first group is the version
 * @returns {string}
 */
export function programVersion(path, pattern) {
  return pattern.exec(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout)?.[1] ?? 'unknown'
}

/**
 * Runs a program to its end.
 * @param {string} path
 * @param {string[]} args
 * @param {import('node:child_process').ExecFileOptions} [options]
 * @returns {Promise<string>} its standard output
 * @throws {Error} when it does not end with 0
 */
export async function runProgram(path, args, options = {}) {
  return (await promisify(execFile)(path, args, { maxBuffer: OUTPUT_BYTES_MAX, ...options })).stdout
}

/**
 * Starts a long-running program and waits until its output says that it is ready.
 * @param {[string, ...string[]]} command
 * @param {{ready: RegExp, signal: NodeJS.Signals, options?: import('node:child_process').SpawnOptions}} how
 *   `signal` stops it
 * @returns {Promise<{pid: number, stop: () => Promise<void>, kill: () => Promise<void>}>} `kill` sends
 *   SIGKILL to the program and its child processes, and waits; it needs /proc
 */
export async function startProgram([path, ...args], { ready, signal, options }) {
  const child = spawn(path, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  killAtExit(child)
  const exited = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), READY_MS_MAX)
  const output = []
  const isReady = new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        output.push(line)
        if (ready.test(line)) resolve(true)
      })
    }
  })
  const serves = await Promise.race([isReady, exited.then(() => false)])
  clearTimeout(timer)
  if (!serves) throw new Error(`${path} ended before it was ready: ${output.slice(-5).join(' ')}`)
  const stop = async () => {
    child.kill(signal)
    await exited
  }
  const kill = async () => {
    // The program first, so that it does not react to the end of its children.
    for (const pid of [child.pid, ...childrenOf(child.pid)]) killIfThere(pid)
    await exited
  }
  return { pid: child.pid, stop, kill }
}

function killIfThere(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    // The process has already exited.
    if (error.code !== 'ESRCH') throw error
  }
}

/**
 * A port that was free just now.
 * @returns {Promise<number>}
 */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
