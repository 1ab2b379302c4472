import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { issueLicense } from '../../dist/src/auth/license.js'
import { keyPairFromSeed } from '../../dist/src/strand/keys.js'
import { inherited } from './inherited.mjs'

const entry = fileURLToPath(new URL('../../dist/program/strandfast.js', import.meta.url))

/** The root key of the killed servers. */
export const rootKey = 'crash-loop-root-key-0123456789abcdef'

/** The seed of a license authority for tests. */
const authoritySeed = Buffer.alloc(32, 7)

/** Settings of the auth add-on. */
export const authSettings = {
  SERVICE_AUTH_ENABLED: 'true',
  SERVICE_AUTH_RATE_LIMIT_RPS: '0',
  SERVICE_LICENSE_PUBLIC_KEY: keyPairFromSeed(authoritySeed).publicKey,
  SERVICE_LICENSE_KEY: await issueLicense(
    authoritySeed,
    { licensee: 'Crash loop', days: 1, features: ['auth'] },
    Date.now(),
  ),
}

/**
 * Starts a server that will be killed.
 * @param {string} dataDir
 * @param {Record<string, string>} [more] further environment variables
 * @param {number} [shards] of a new directory
 */
export function startVictim(dataDir, more = {}, shards = 2) {
  const env = {
    ...inherited,
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PORT: '0',
    SERVICE_ROOT_API_KEY: rootKey,
    SERVICE_RATE_LIMIT_RPS: '0',
    SERVICE_MIN_FREE_BYTES: '0',
    SERVICE_LOG_LEVEL: 'warn',
    ...authSettings,
    // An existing directory may have been resharded.
    ...(!existsSync(join(dataDir, 'format.json')) && { SERVICE_SHARDS: String(shards) }),
    ...more,
  }
  const child = spawn(process.execPath, [entry, 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (bytes) => (stderr += bytes))
  // After its last output.
  const exited = once(child, 'close')
  return {
    pid: child.pid,
    /** Resolves when it has ended. */
    exited,
    /** Resolves to its address; undefined if it was killed before. @throws Error if it ended by itself */
    async listening() {
      for await (const line of createInterface({ input: child.stdout })) {
        const url = /^listening on (\S+)$/.exec(line)?.[1]
        if (url !== undefined) return url
      }
      await exited
      if (child.signalCode === 'SIGKILL') return undefined
      throw new Error(
        `The server ended with ${child.exitCode ?? child.signalCode} before it listened:\n${stderr}`,
      )
    },
    /** Kills it like a crash and waits for its end. */
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
    /** Stops it gracefully. @returns {Promise<number \| null>} the exit code */
    async stop() {
      child.kill('SIGTERM')
      await exited
      return child.exitCode
    },
    stderr: () => stderr,
    /** The exit code, or the signal that ended it; null while it runs. */
    ended: () => child.exitCode ?? child.signalCode,
  }
}
