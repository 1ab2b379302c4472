import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { rootKey } from './victim.mjs'
import { between } from './seeded-random.mjs'

const entry = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url))

/** The most shards that a directory is moved to. */
const SHARDS_MAX = 4
/** How long a reshard lives that is killed, milliseconds at most: about as long as one takes. */
const LIVES_MS_MAX = 1_500

/**
 * Moves a data directory to some other number of shards, after killing some tries.
 * @param {string} dataDir
 * @param {() => number} random
 * @returns {Promise<string>} what happened
 */
export async function reshardAndKill(dataDir, random) {
  const before = shardsOf(dataDir)
  let shards = between(random, 1, SHARDS_MAX - 1)
  if (shards >= before) shards++
  const tries = between(random, 0, 3)
  for (let count = 0; count < tries; count++) {
    const child = start(dataDir, shards)
    const exited = once(child, 'exit')
    await Promise.race([exited, pause(between(random, 0, LIVES_MS_MAX))])
    child.kill('SIGKILL')
    await exited
  }
  // Some directories are left as the last kill left them: the server ends or undoes what was cut off.
  if (tries > 0 && random() < 0.5) return `${tries} reshards killed, ${before} to ${shards} shards`
  const child = start(dataDir, shards)
  let said = ''
  child.stderr.on('data', (bytes) => (said += bytes))
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`The reshard ended with ${code}:\n${said}`)
  return `${before} to ${shards} shards, after ${tries} kills`
}

function start(dataDir, shards) {
  const env = { PATH: process.env.PATH, SERVICE_DATA_DIR: dataDir, SERVICE_ROOT_API_KEY: rootKey }
  const args = [entry, 'reshard', '--shards', String(shards)]
  return spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
}

function shardsOf(dataDir) {
  return JSON.parse(readFileSync(join(dataDir, 'format.json'), 'utf8')).shards
}
