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

/** Records that fill the caches. */
const FILLED = 100_000
/** The number of samples of a run. */
const SAMPLES = 240

/** Revocations are stored until the tokens expire: soon, so that their number stays constant. */
const settings = {
  SERVICE_AUTH_JWT_EXPIRY_SECS: '10',
  SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS: '15',
  SERVICE_RECORD_CACHE_BYTES: String(4 * 2 ** 20),
}

/**
 * Runs a server under a constant load and judges whether its memory, handles and files stay flat.
 * @param {{minutes: number, seed: number, rate: number, filled?: number, crashEverySecs?: number, report?:
 * (line: string) => void, preload?: string}} options `rate`: records per second; `filled`: records that are
 * written first, because memory cannot be judged while caches fill; `crashEverySecs`: the interval at which
 * the server is killed and restarted; `preload`: a further module for the server
 * @returns {Promise<{verdicts: import('./judge.mjs').Verdict[], faults: string[], records: number, skipped:
 * number, starts: import('./judge.mjs').Start[]}>}
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
  const server = new RestartedServer(dataDir, { ...settings, NODE_OPTIONS })
  try {
    const url = await server.start()
    const load = new SteadyLoad(url, { random: seededRandom(seed), rate })
    await load.begin(filled)
    const { samples, starts } = await watch({ server, load, secs: minutes * 60, crashEverySecs, report })
    await load.end()
    const code = await server.victim.stop()
    if (code !== 0) load.faults.push(`The server stopped with ${code}: ${server.victim.stderr()}`)
    const { faults, records, skipped } = load
    return { verdicts: judge(samples, starts), faults, records, skipped, starts }
  } finally {
    await server.victim?.kill()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** A server that is killed and restarted, each time at another address. */
class RestartedServer {
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

  /**
   * @returns {Promise<{url: string, tookSecs: number, replayed: number}>} the duration and the replayed
   * commits of the start
   */
  async crash() {
    await this.victim.kill()
    const fromMs = performance.now()
    const url = await this.start()
    const tookSecs = (performance.now() - fromMs) / 1_000
    return { url, tookSecs, replayed: await readMetric(url, 'strandfast_replayed_commits') }
  }
}

/** Samples the process until the time is over or it has ended, and kills it at intervals. */
async function watch({ server, load, secs, crashEverySecs, report }) {
  const samples = []
  const starts = []
  const everySecs = secs / SAMPLES
  const beganMs = performance.now()
  const secsNow = () => (performance.now() - beganMs) / 1_000
  for (let number = 1; number <= SAMPLES && server.victim.ended() === null; number++) {
    await pause(Math.max(0, number * everySecs - secsNow()) * 1_000)
    const { pid } = server.victim
    const sample = takeSample({ pid, dataDir: server.dataDir, secs: secsNow(), records: load.records })
    samples.push(sample)
    if (number % (SAMPLES / 20) === 0) report(lineOf(sample))
    if (secsNow() < (starts.length + 1) * crashEverySecs) continue
    load.expectCrash()
    const { url, ...start } = await server.crash()
    starts.push({ secs: secsNow(), ...start })
    await load.resume(url)
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
