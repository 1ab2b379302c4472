// @run first
import { expect, it } from 'vitest'
import { count } from '../support/faults/rounds.js'
import { fc } from '../support/fast-check.js'
import { runSeed } from '../support/run-seed.js'
import { takeStep } from './calls.js'
import { compare, compareAll } from './compare.js'
import { firstAgents } from './reads.js'
import { Session } from './session.js'
import { anyRun, type Run } from './steps.js'

/*
 * Random calls go to a server and to a simple model of it; all answers, records and reads are compared. The
 * clock of the server moves only in steps of the test, so the model knows all times. STRANDFAST_SEED repeats
 * the runs of a seed, STRANDFAST_PATH the failed one.
 */

const path = process.env['STRANDFAST_PATH']
const RUNS = 1

/** How long a failed run is shrunk; the seed and the path repeat it in any case. */
const shrinkMs = 120_000

/** The time of the first failure, and the log of the smallest failed run. */
let failed: { firstAtMs: number; log: readonly string[] } | undefined

/** The maximum duration of all runs. */
const runsMaxMs = 60_000 * RUNS + shrinkMs

it('agrees with the simple model for random calls', { timeout: runsMaxMs + shrinkMs }, async () => {
  const details = await fc.check(fc.asyncProperty(fc.noBias(anyRun), agreesInTime), {
    seed: runSeed('the model'),
    numRuns: RUNS,
    interruptAfterTimeLimit: runsMaxMs,
    ...(path !== undefined && { path }),
  })
  count({ modelRuns: details.numRuns })
  if (!details.failed) return
  const where = `STRANDFAST_SEED=${details.seed} STRANDFAST_PATH=${details.counterexamplePath}`
  const run = JSON.stringify({ ...details.counterexample?.[0], steps: undefined })
  const log = failed?.log.join('\n')
  expect.fail(`${where}, run ${details.numRuns}: ${run}\n${String(details.errorInstance)}\nafter\n${log}`)
})

const plain = { agent: 'alpha', carries: 'nothing' } as const

/** Runs in which campaigns found a difference, made smaller. */
const found: [about: string, Run][] = [
  [
    'proposals of one agent that are due together, by keys and by the root key',
    {
      shards: 2,
      signing: 'record',
      zones: ['governed', 'free', 'free', 'free'],
      steps: [
        { ...plain, do: 'change', by: 'writer', change: { action: 'policies', policies: 0 } },
        { ...plain, do: 'mutate', by: 'root', action: 'delete', target: { of: 'written', pick: 0 } },
        { ...plain, do: 'mutate', by: 'second', action: 'delete', target: { of: 'written', pick: 1 } },
        { ...plain, do: 'change', by: 'root', change: { action: 'zone', zone: 'free' } },
        { do: 'time', ms: 3_600_000, server: 'runs' },
      ],
    },
  ],
]

it.each(found)('agrees with the simple model: %s', { timeout: runsMaxMs }, async (_about, run) => {
  await agrees(run)
})

/** Ends shrinking after `shrinkMs`: every later run passes. */
async function agreesInTime(run: Run): Promise<void> {
  if (failed === undefined || performance.now() - failed.firstAtMs < shrinkMs) await agrees(run)
}

async function agrees({ shards, signing, zones, steps }: Run): Promise<void> {
  const session = new Session({ shards, signing })
  try {
    await session.start()
    await makeAgents(session, zones)
    for (const step of steps) {
      if (step.do === 'read') await compare(session, step.read)
      else await takeStep(session, step)
    }
    await compareAll(session)
    await session.finish()
  } catch (error) {
    failed = { firstAtMs: failed?.firstAtMs ?? performance.now(), log: session.log }
    throw error
  } finally {
    await session.remove()
  }
}

/** Creates the first agents, with some records. */
async function makeAgents(session: Session, zones: Run['zones']): Promise<void> {
  const by = session.actor('root')
  for (const [index, agent] of firstAgents.entries()) {
    const zone = zones[index] ?? 'free'
    await session.perform({ request: { kind: 'createAgent', agent, zone }, by })
    const items = [1, 2, 3].map((v) => ({ data: { n: session.nextNumber(), tag: 'x', v } }))
    await session.perform({ request: { kind: 'batch', agent, via: 'agent', items, atomic: true }, by })
  }
}
