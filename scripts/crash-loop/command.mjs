import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const entry = fileURLToPath(new URL('../../dist/program/strandfast.js', import.meta.url))

/**
 * Starts a command of the command line.
 * @param {string[]} args
 * @param {Record<string, string | undefined>} env
 */
export function startCommand(args, env) {
  const child = spawn(process.execPath, [entry, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (bytes) => (stderr += bytes))
  const ended = once(child, 'close').then(() => ({ code: child.exitCode, stderr }))
  return {
    /** Resolves when it is gone, to its exit code, null when it was killed, and what it wrote. */
    ended,
    /** Whether it has ended. */
    isOver: () => child.exitCode !== null || child.signalCode !== null,
    /** Ends it as a crash does. */
    async kill() {
      child.kill('SIGKILL')
      return ended
    },
  }
}
