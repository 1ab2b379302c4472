import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { Life } from './life.mjs'
import { RoundKinds } from './rounds.mjs'
import { seededRandom } from './seeded-random.mjs'

/** Rounds per data directory: few enough that it can be copied and verified within a second. */
const LIFE_ROUNDS = 25
/** The number of first rounds that kill the first start of a data directory. */
const FIRST_STARTS = 3
/**
 * New parts of strands are verified every so many rounds; at the end of a directory, all strands are verified
 * completely.
 */
const VERIFIED_EVERY = 8

/**
 * Repeatedly kills servers, and commands on data directories, at random moments and checks the result: first
 * starts, servers under load, starts after a crash, backups and restores.
 * @param {{rounds: number, seed: number, report?: (line: string) => void, afterKill?: (dataDir: string,
 * random: () => number) => Promise<string>}} options with `afterKill`, all rounds kill a server under load on
 * one directory, and `afterKill` changes the directory before its check
 * @returns {Promise<{faults: string[], answered: number, unanswered: number, records: number}>}
 */
export async function crashLoop({ rounds, seed, report = () => {}, afterKill }) {
  const random = seededRandom(seed)
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-crash-'))
  const total = { faults: [], answered: 0, unanswered: 0, records: 0 }
  const print = (line, round) => report(`round ${round + 1}/${rounds}: ${line}`)
  try {
    const most = afterKill === undefined ? LIFE_ROUNDS : rounds
    for (let first = 0; first < rounds && total.faults.length === 0; first += most) {
      const lifeDirectory = join(directory, `life-${first}`)
      mkdirSync(lifeDirectory)
      const life = new Life(lifeDirectory, random)
      const count = Math.min(most, rounds - first)
      await runLife(life, { count, afterKill, report: (line, round) => print(line, first + round) })
      total.faults.push(...life.faults)
      total.answered += life.answered
      total.unanswered += life.unanswered
      total.records += life.records
      if (total.faults.length === 0) rmSync(lifeDirectory, { recursive: true, force: true })
    }
    return total
  } finally {
    if (total.faults.length > 0) report(`the data are in ${directory}`)
    else rmSync(directory, { recursive: true, force: true })
  }
}

async function runLife(life, { count, afterKill, report }) {
  const kinds = new RoundKinds(life)
  const firstStarts = afterKill === undefined ? Math.min(FIRST_STARTS, count - 1) : 0
  try {
    for (let round = 0; round < count && life.faults.length === 0; round++) {
      if (round < firstStarts) {
        report(await kinds.firstStart(), round)
        continue
      }
      const done = afterKill === undefined ? await kinds.any() : await kinds.underLoad(afterKill)
      const isLast = round === count - 1
      const strands = isLast || round % VERIFIED_EVERY === VERIFIED_EVERY - 1
      // A round that killed no server has nothing new to check.
      const found =
        life.isRunning && !strands ? 'the server kept running' : await life.check({ strands, whole: isLast })
      report(
        `${done}; ${found}; ${life.faults.length === 0 ? 'all there' : `${life.faults.length} faults`}`,
        round,
      )
    }
  } catch (error) {
    life.faults.push(inspect(error))
  } finally {
    await life.end()
  }
}
