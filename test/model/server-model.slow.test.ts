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
 * Random calls go to a server and to a plain model of it; every answer, every record and every read is compared. The
 * clock of the server stands still but for the steps that move it, so the model knows all times.
 * STRANDFAST_SEED repeats the runs of a seed, STRANDFAST_PATH the one of them that failed.
 */

const path = process.env['STRANDFAST_PATH']
const RUNS = 1

/** How long a run that fails is made smaller; the seed and the path repeat it in any case. */
const shrinkMs = 120_000

/** What has failed: when for the first time, and what the smallest run did. */
let failed: { firstAtMs: number; log: readonly string[] } | undefined

/** How long all runs may take. */
const patienceMs = 60_000 * RUNS + shrinkMs

it('does what the plain model does, whatever comes', { timeout: patienceMs + shrinkMs }, async () => {
  const details = await fc.check(fc.asyncProperty(fc.noBias(anyRun), agreesInTime), {
    seed: runSeed('the model'),
    numRuns: RUNS,
    interruptAfterTimeLimit: patienceMs,
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

it.each(found)('does what the plain model does: %s', { timeout: patienceMs }, async (_about, run) => {
  await agrees(run)
})

/** Once something has failed for long enough, everything passes, and so nothing is made smaller any more. */
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

/** The agents that there are from the beginning, with some records. */
async function makeAgents(session: Session, zones: Run['zones']): Promise<void> {
  const by = session.actor('root')
  for (const [index, agent] of firstAgents.entries()) {
    const zone = zones[index] ?? 'free'
    await session.perform({ asked: { kind: 'createAgent', agent, zone }, by })
    const items = [1, 2, 3].map((v) => ({ data: { n: session.nextNumber(), tag: 'x', v } }))
    await session.perform({ asked: { kind: 'batch', agent, via: 'agent', items, atomic: true }, by })
  }
}
