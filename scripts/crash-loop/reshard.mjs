import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startCommand } from './command.mjs'
import { inherited } from './inherited.mjs'
import { between } from './seeded-random.mjs'
import { rootKey } from './victim.mjs'

/** The maximum number of shards. */
const SHARDS_MAX = 4
/** The maximum lifetime of a killed reshard, milliseconds: about the duration of one. */
const LIVES_MS_MAX = 1_500

/**
 * Changes a data directory to a random number of shards, after some killed attempts.
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
    const reshard = start(dataDir, shards)
    await Promise.race([reshard.ended, pause(between(random, 0, LIVES_MS_MAX))])
    await reshard.kill()
  }
  // Some directories stay as the last kill left them: the server completes or undoes the interrupted reshard.
  if (tries > 0 && random() < 0.5) return `${tries} reshards killed, ${before} to ${shards} shards`
  const { code, stderr } = await start(dataDir, shards).ended
  if (code !== 0) throw new Error(`The reshard ended with ${code}:\n${stderr}`)
  return `${before} to ${shards} shards, after ${tries} kills`
}

function start(dataDir, shards) {
  const env = { ...inherited, SERVICE_DATA_DIR: dataDir, SERVICE_ROOT_API_KEY: rootKey }
  return startCommand(['reshard', '--shards', String(shards)], env)
}

function shardsOf(dataDir) {
  return JSON.parse(readFileSync(join(dataDir, 'format.json'), 'utf8')).shards
}
