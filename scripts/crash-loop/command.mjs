import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const entry = fileURLToPath(new URL('../../dist/program/strandfast.js', import.meta.url))

/**
 * Starts a command of the program.
 * @param {string[]} args
 * @param {Record<string, string | undefined>} env
 */
export function startCommand(args, env) {
  const child = spawn(process.execPath, [entry, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (bytes) => (stderr += bytes))
  const ended = once(child, 'close').then(() => ({ code: child.exitCode, stderr }))
  return {
    /** Resolves when it has ended, to its standard error and exit code (null after a kill). */
    ended,
    /** Whether it has ended. */
    isOver: () => child.exitCode !== null || child.signalCode !== null,
    /** Kills it like a crash. */
    async kill() {
      child.kill('SIGKILL')
      return ended
    },
  }
}
