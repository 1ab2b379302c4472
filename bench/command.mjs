import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { killAtExit } from './child.mjs'
import { program } from './product.mjs'

/** Prefix of the line in which a command reports its time and memory. */
const MARK = 'bench-result '

/**
 * Runs a command of the built command line and waits until it exits.
 * @param {string[]} args
 * @param {Record<string, string>} [env] added to the environment
 * @returns {Promise<{out: string, elapsedMs: number, cpuMs: number, peakBytes: number}>} `peakBytes`: peak
 * resident memory
 * @throws {Error} when the exit code is not 0
 */
export async function runCommand(args, env = {}) {
  const script = `process.argv = [process.execPath, 'strandfast', ...process.argv.slice(1)]
    process.on('exit', () => {
      const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
      const usage = { cpuMs: (userCPUTime + systemCPUTime) / 1000, peakBytes: maxRSS * 1024 }
      process.stderr.write('\\n${MARK}' + JSON.stringify(usage))
    })
    await import(${JSON.stringify(pathToFileURL(program()).href)})`
  const startMs = performance.now()
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, '--', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  killAtExit(child)
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (err += text))
  const [code] = await once(child, 'close')
  const elapsedMs = Math.round(performance.now() - startMs)
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}: ${out}${err}`)
  const usage = JSON.parse(err.slice(err.lastIndexOf(MARK) + MARK.length))
  return { out, elapsedMs, ...usage }
}
