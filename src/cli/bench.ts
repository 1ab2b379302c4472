import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pooledRandom, type RandomBytes } from '../base/random.js'
import { type Config, describeFaults } from '../settings/config.js'
import { version } from '../base/version.js'
import { loadGenerator, noGenerator } from './bench-load.js'
import { measureServer, type Measured } from './bench-scenarios.js'
import { signRate, syncRate } from './bench-machine.js'
import { runningServer } from './bench-running.js'
import { startBenchServer } from './bench-server.js'
import { nearestExisting } from './doctor-data.js'
import { exitCodes } from './exit-codes.js'
import { loadEngine } from '../front/door/engine.js'
import { startProgress } from './progress.js'
import { describeError } from './printable.js'
import { readOptions, showUsage } from './read-options.js'
import { settingsOf } from './read-settings.js'
import { SERVER_USAGE, serverAsked, serverOptions, type ServerValues } from './server-url.js'
import { onStopSignal } from './stop-signals.js'

const USAGE = `Usage: strandfast bench [--seconds N] [--dir DIR | --url URL] [--json]
Measures this machine and this build: starts a server of its own on a temporary directory, which it removes again, and
asks it as fast as it answers. Your data is not touched. SERVICE_SHARDS and SERVICE_SIGNING count.
  --seconds  of each measurement, 1 to 60; 3 unless given
  --dir      a directory on the disk to measure; that of SERVICE_DATA_DIR unless given
  --url      a running server to measure in its place: its agents bench-00 to bench-31 get records, which stay; it must not
             limit the rate of this address (docs/LOAD-TESTING.md)
  --json     one JSON object in place of the table
The load comes from the package autocannon, which is installed beside this one: npm install autocannon
With --url: ${SERVER_USAGE}`

/** Milliseconds of each measurement of the machine alone. */
const MACHINE_MS = 1000

const ROOT_KEY_BYTES = 32

/** Measurements of the server, each of as many seconds as asked for. */
const SERVER_MEASUREMENTS = 3

/** Is told what is measured now. */
type Tell = (doing: string) => void

/** The most that the machine could do, for comparison with the server's figures. */
interface Ceilings {
  syncsPerSecond: number
  signaturesPerSecond: number
}

/**
 * Measures this machine and this build. The load comes from this very process, on the server's cores.
 * @returns the exit code: 0 measured, 1 the server failed or answered wrong, 78 wrong usage, settings or directory
 */
export async function benchCommand(args: string[]): Promise<number> {
  const options = readOptions(args, {
    seconds: { type: 'string', default: '3' },
    dir: { type: 'string' },
    json: { type: 'boolean', default: false },
    ...serverOptions,
  })
  if (!options.ok) return showUsage(USAGE, options)
  const { seconds, dir, json, url } = options.values
  const refuse = (fault: string) => showUsage(USAGE, { help: false, fault })
  if (!/^([1-9]|[1-5]\d|60)$/.test(seconds)) return refuse('Expected a number from 1 to 60 after --seconds')
  if (dir !== undefined && !isDirectory(dir)) return refuse('Expected a directory after --dir')
  if ((await loadGenerator()) === undefined) {
    process.stderr.write(`${noGenerator}\n`)
    return exitCodes.configuration
  }
  if (url !== undefined) return benchRunning(options.values, Number(seconds))
  if (options.values.key !== undefined) return refuse('Expected --key only with --url')
  const reading = settingsOf(options.values['data-dir'])
  if (!reading.ok) {
    process.stderr.write(describeFaults(reading.faults))
    return exitCodes.configuration
  }
  const loading = await loadEngine(reading.config.httpEngine)
  if (!loading.ok) {
    process.stderr.write(`${loading.detail}\n`)
    return exitCodes.configuration
  }
  const base = dir === undefined ? besideData(reading.config.dataDir) : resolve(dir)
  try {
    const plan = { seconds: Number(seconds), base, config: reading.config, random: pooledRandom() }
    process.stdout.write(json ? await measuredAsJson(plan) : await measuredAsText(plan))
    return exitCodes.fine
  } catch (error) {
    return notMeasured(error)
  }
}

/** Measures a server that runs already, from here. */
async function benchRunning(
  values: ServerValues & { dir?: string; json: boolean },
  seconds: number,
): Promise<number> {
  const asked = serverAsked(values)
  const fault =
    typeof asked === 'string' ? asked : values.dir === undefined ? undefined : 'Expected --dir or --url'
  if (typeof asked === 'string' || fault !== undefined)
    return showUsage(USAGE, { help: false, fault: fault ?? '' })
  const pictured = benchProgress({ seconds, machineSecs: 0, quiet: values.json })
  try {
    const server = await runningServer(asked)
    const results = await measureServer(server, { seconds, tell: pictured.tell }).finally(() =>
      pictured.end(),
    )
    const { cpu, cores } = machine()
    const report = { version, node: process.version, cpu, cores, seconds, url: asked.url }
    process.stdout.write(
      values.json
        ? `${JSON.stringify({ ...report, results: results.map(rounded) })}\n`
        : `${asked.url}, asked from here: Node ${process.versions.node}, ${cores} cores, ${cpu}\n${table(results)}\n`,
    )
    return exitCodes.fine
  } catch (error) {
    return notMeasured(error)
  }
}

function notMeasured(error: unknown): number {
  process.stderr.write(`Not measured: ${describeError(error)}\n`)
  return exitCodes.foundWrong
}

function machine(): { cpu: string; cores: number } {
  return { cpu: cpus()[0]?.model ?? 'unknown CPU', cores: availableParallelism() }
}

function rounded({ name, unit, perSecond, p50Ms, p99Ms }: Measured): object {
  const [p50_ms, p99_ms] = [Number(p50Ms.toFixed(3)), Number(p99Ms.toFixed(3))]
  return { name, unit, per_second: Math.round(perSecond), p50_ms, p99_ms }
}

function table(results: readonly Measured[]): string {
  return results
    .map(
      ({ name, unit, perSecond, p50Ms, p99Ms }) =>
        `${name.padEnd(44)} ${figure(perSecond)} ${unit.padEnd(10)}  p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
    )
    .join('\n')
}

/** The plan of a run. `base` is an existing directory, below which everything happens. */
interface Plan {
  seconds: number
  base: string
  config: Config
  random: RandomBytes
}

async function measuredAsJson(plan: Plan): Promise<string> {
  const { ceilings, results } = await measure(plan, () => {})
  const report = {
    version,
    node: process.version,
    cpu: cpus()[0]?.model ?? '',
    cores: availableParallelism(),
    seconds: plan.seconds,
    signing: plan.config.signing,
    ceilings: {
      synchronised_writes_per_second: Math.round(ceilings.syncsPerSecond),
      signatures_per_second: Math.round(ceilings.signaturesPerSecond),
    },
    results: results.map(rounded),
  }
  return `${JSON.stringify(report)}\n`
}

async function measuredAsText(plan: Plan): Promise<string> {
  const pictured = benchProgress({
    seconds: plan.seconds,
    machineSecs: (2 * MACHINE_MS) / 1_000,
    quiet: false,
  })
  const { ceilings, results } = await measure(plan, pictured.tell).finally(() => pictured.end())
  const { syncsPerSecond, signaturesPerSecond } = ceilings
  return `strandfast ${version}, Node ${process.versions.node}, ${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown CPU'}
${table(results)}

The machine alone:
${'4 KiB written and synchronised, one by one'.padEnd(44)} ${figure(syncsPerSecond)} writes/s
${'Ed25519 signatures of one core'.padEnd(44)} ${figure(signaturesPerSecond)} signatures/s

The load came from this process, on the same cores as the server.
`
}

function figure(perSecond: number): string {
  return Math.round(perSecond).toLocaleString('en').padStart(9)
}

/** Tells what is measured now: on a terminal with the time that is left of all, elsewhere by its name. */
function benchProgress({
  seconds,
  machineSecs,
  quiet,
}: {
  seconds: number
  machineSecs: number
  quiet: boolean
}): { tell: Tell; end(): void } {
  const progress = startProgress()
  const total = machineSecs + SERVER_MEASUREMENTS * seconds
  const sinceMs = performance.now()
  return {
    tell(doing) {
      if (quiet) return
      if (!process.stderr.isTTY) process.stderr.write(`${doing}\n`)
      const done = () => Math.min(total, (performance.now() - sinceMs) / 1_000)
      progress.show({ doing: `${doing}:`, unit: 'seconds', state: () => ({ done: done(), total }) })
      progress.paint()
    },
    end: () => progress.end(),
  }
}

/** Measures the machine, then the server. Leaves nothing behind, whatever happens. */
async function measure(
  { seconds, base, config, random }: Plan,
  tell: Tell,
): Promise<{ ceilings: Ceilings; results: Measured[] }> {
  const directory = mkdtempSync(join(base, 'strandfast-bench-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  const stopOnSignal = () => process.exit(exitCodes.foundWrong)
  process.once('exit', remove)
  const ignoreSignals = onStopSignal(stopOnSignal)
  try {
    tell('Measuring the machine')
    const ceilings = {
      syncsPerSecond: syncRate(directory, MACHINE_MS),
      signaturesPerSecond: signRate(MACHINE_MS),
    }
    const rootKey = Buffer.from(random(ROOT_KEY_BYTES)).toString('hex')
    const server = await startBenchServer(join(directory, 'data'), rootKey, config)
    try {
      return { ceilings, results: await measureServer(server, { seconds, tell }) }
    } finally {
      await server.stop()
    }
  } finally {
    remove()
    process.off('exit', remove)
    ignoreSignals()
  }
}

/** Beside the data directory; within it if that is a disk of its own, like the volume of a container. */
function besideData(dataDir: string): string {
  if (!existsSync(dataDir)) return nearestExisting(dataDir)
  const parent = dirname(dataDir)
  return statSync(parent).dev === statSync(dataDir).dev ? parent : dataDir
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
