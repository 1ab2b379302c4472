import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { seededRandom } from '../crash-loop/seeded-random.mjs'
import { startVictim } from '../crash-loop/victim.mjs'
import { judge } from './judge.mjs'
import { SteadyLoad } from './load.mjs'
import { takeSample } from './sampler.mjs'

const collector = fileURLToPath(new URL('collect.mjs', import.meta.url))

/** Records after which the caches are full. */
const FILLED = 100_000
/** Samples of a run. */
const SAMPLES = 240

/** Revocations are kept until the tokens would have expired: soon, so that their number stays the same. */
const settings = {
  SERVICE_AUTH_JWT_EXPIRY_SECS: '10',
  SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS: '15',
  SERVICE_RECORD_CACHE_BYTES: String(4 * 2 ** 20),
}

/**
 * Runs a server under a steady load and judges whether its memory, its handles and its files stay flat.
 * @param {{minutes: number, seed: number, rate: number, filled?: number, report?: (line: string) => void, preload?:
 * string}} options `rate`: records a second; `filled`: records that are written before, since memory cannot be judged
 * while caches fill; `preload`: a module that the server loads too
 * @returns {Promise<{verdicts: import('./judge.mjs').Verdict[], faults: string[], records: number, skipped: number}>}
 */
export async function soak({ minutes, seed, rate, filled = FILLED, report = () => {}, preload }) {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-soak-'))
  const dataDir = join(directory, 'data')
  const imports = [collector, ...(preload === undefined ? [] : [preload])]
  const NODE_OPTIONS = imports.map((path) => `--import=${path}`).join(' ')
  const victim = startVictim(dataDir, { ...settings, NODE_OPTIONS })
  try {
    const url = (await victim.listening()) ?? ''
    const load = new SteadyLoad(url, { random: seededRandom(seed), rate })
    await load.begin(filled)
    const samples = await watch({ victim, dataDir, load, secs: minutes * 60, report })
    await load.end()
    const code = await victim.stop()
    if (code !== 0) load.faults.push(`The server stopped with ${code}: ${victim.stderr()}`)
    const { faults, records, skipped } = load
    return { verdicts: judge(samples), faults, records, skipped }
  } finally {
    await victim.kill()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Samples the process until the time is over, or it has ended. */
async function watch({ victim, dataDir, load, secs, report }) {
  const samples = []
  const everySecs = secs / SAMPLES
  const beganMs = performance.now()
  for (let number = 1; number <= SAMPLES && victim.ended() === null; number++) {
    await pause(Math.max(0, number * everySecs * 1_000 - (performance.now() - beganMs)))
    const nowSecs = (performance.now() - beganMs) / 1_000
    const sample = takeSample({ pid: victim.pid, dataDir, secs: nowSecs, records: load.records })
    samples.push(sample)
    if (number % (SAMPLES / 20) === 0) report(lineOf(sample))
  }
  return samples
}

function lineOf({ secs, memoryBytes, handles, threads, fileBytes, records }) {
  const mebibytes = (bytes) => `${Math.round(bytes / 2 ** 20)} MiB`
  return (
    `${Math.round(secs)} s: ${mebibytes(memoryBytes)} of memory, ${handles} handles, ${threads} threads, ` +
    `${mebibytes(fileBytes)} of files, ${records} records`
  )
}
