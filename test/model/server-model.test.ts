import fc from 'fast-check'
import { expect, it } from 'vitest'
import { takeStep } from './calls.js'
import { compare, compareAll } from './compare.js'
import { firstAgents } from './reads.js'
import { Session } from './session.js'
import { anyRun, type Run } from './steps.js'

/*
 * Random calls go to a server and to a plain model of it; every answer, every record and every read is compared. The
 * clock of the server stands still but for the steps that move it, so the model knows all times.
 * STRANDFAST_SEED repeats the runs of a seed, STRANDFAST_PATH one of them, STRANDFAST_RUNS says how many there are.
 */

const environment = process.env
const seed = Number(environment['STRANDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const path = environment['STRANDFAST_PATH']
const runs = Number(environment['STRANDFAST_RUNS'] ?? (environment['CI'] === 'true' ? 100 : 20))

it('does what the plain model does, whatever comes', { timeout: 120_000 + 30_000 * runs }, async () => {
  process.stdout.write(`The model test draws ${runs} runs from STRANDFAST_SEED=${seed}\n`)
  const details = await fc.check(fc.asyncProperty(fc.noBias(anyRun), whole), {
    seed,
    numRuns: runs,
    ...(path !== undefined && { path }),
    endOnFailure: environment['STRANDFAST_SHRINK'] === '0',
  })
  if (!details.failed) return
  const where = `STRANDFAST_SEED=${details.seed} STRANDFAST_PATH=${details.counterexamplePath}`
  const run = JSON.stringify({ ...details.counterexample?.[0], steps: undefined })
  expect.fail(`${where} ${run}\n${String(details.errorInstance)}\nafter\n${lastLog.join('\n')}`)
})

/** What the last run did. */
let lastLog: readonly string[] = []

async function whole({ shards, signing, zones, steps }: Run): Promise<void> {
  const session = new Session({ shards, signing })
  lastLog = session.log
  try {
    await session.start()
    const by = session.actor('root')
    for (const [index, agent] of firstAgents.entries()) {
      const zone = zones[index] ?? 'free'
      await session.perform({ asked: { kind: 'createAgent', agent, zone }, by })
      const items = [1, 2, 3].map((v) => ({ data: { n: session.nextNumber(), tag: 'x', v } }))
      await session.perform({ asked: { kind: 'batch', agent, via: 'agent', items, atomic: true }, by })
    }
    for (const step of steps) {
      if (step.do === 'read') await compare(session, step.read)
      else await takeStep(session, step)
    }
    await compareAll(session)
    await session.finish()
  } finally {
    await session.remove()
  }
}
