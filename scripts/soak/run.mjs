import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { readMetric } from '../../bench/server.mjs'
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
 * @param {{minutes: number, seed: number, rate: number, filled?: number, crashEverySecs?: number, report?: (line: string)
 * => void, preload?: string}} options `rate`: records a second; `filled`: records that are written before, since memory
 * cannot be judged while caches fill; `crashEverySecs`: how often the server is killed and started again; `preload`: a
 * module that the server loads too
 * @returns {Promise<{verdicts: import('./judge.mjs').Verdict[], faults: string[], records: number, skipped: number,
 *   starts: import('./judge.mjs').Start[]}>}
 */
export async function soak({
  minutes,
  seed,
  rate,
  filled = FILLED,
  crashEverySecs = Infinity,
  report = () => {},
  preload,
}) {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-soak-'))
  const dataDir = join(directory, 'data')
  const imports = [collector, ...(preload === undefined ? [] : [preload])]
  const NODE_OPTIONS = imports.map((path) => `--import=${path}`).join(' ')
  const lives = new Lives(dataDir, { ...settings, NODE_OPTIONS })
  try {
    const url = await lives.start()
    const load = new SteadyLoad(url, { random: seededRandom(seed), rate })
    await load.begin(filled)
    const { samples, starts } = await watch({ lives, load, secs: minutes * 60, crashEverySecs, report })
    await load.end()
    const code = await lives.victim.stop()
    if (code !== 0) load.faults.push(`The server stopped with ${code}: ${lives.victim.stderr()}`)
    const { faults, records, skipped } = load
    return { verdicts: judge(samples, starts), faults, records, skipped, starts }
  } finally {
    await lives.victim?.kill()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** A server that is killed and started again, at another address each time. */
class Lives {
  victim
  dataDir
  #env

  constructor(dataDir, env) {
    this.dataDir = dataDir
    this.#env = env
  }

  async start() {
    this.victim = startVictim(this.dataDir, this.#env)
    return (await this.victim.listening()) ?? ''
  }

  /** @returns {Promise<{url: string, tookSecs: number, replayed: number}>} of the start: its time, and the commits of its log */
  async crash() {
    await this.victim.kill()
    const fromMs = performance.now()
    const url = await this.start()
    const tookSecs = (performance.now() - fromMs) / 1_000
    return { url, tookSecs, replayed: await readMetric(url, 'strandfast_replayed_commits') }
  }
}

/** Samples the process until the time is over, or it has ended; and kills it now and then. */
async function watch({ lives, load, secs, crashEverySecs, report }) {
  const samples = []
  const starts = []
  const everySecs = secs / SAMPLES
  const beganMs = performance.now()
  const secsNow = () => (performance.now() - beganMs) / 1_000
  for (let number = 1; number <= SAMPLES && lives.victim.ended() === null; number++) {
    await pause(Math.max(0, number * everySecs - secsNow()) * 1_000)
    const { pid } = lives.victim
    const sample = takeSample({ pid, dataDir: lives.dataDir, secs: secsNow(), records: load.records })
    samples.push(sample)
    if (number % (SAMPLES / 20) === 0) report(lineOf(sample))
    if (secsNow() < (starts.length + 1) * crashEverySecs) continue
    load.expectCrash()
    const { url, ...start } = await lives.crash()
    starts.push({ secs: secsNow(), ...start })
    await load.goOn(url)
  }
  return { samples, starts }
}

function lineOf({ secs, memoryBytes, handles, threads, fileBytes, logBytes, records }) {
  const mebibytes = (bytes) => `${Math.round(bytes / 2 ** 20)} MiB`
  return (
    `${Math.round(secs)} s: ${mebibytes(memoryBytes)} of memory, ${handles} handles, ${threads} threads, ` +
    `${mebibytes(fileBytes)} of files, ${mebibytes(logBytes)} of logs, ${records} records`
  )
}
