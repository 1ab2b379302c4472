import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { Life } from './life.mjs'
import { RoundKinds } from './rounds.mjs'
import { seededRandom } from './seeded-random.mjs'

/** Rounds on one data directory: as many as leave it small enough to be copied and verified within a second. */
const LIFE_ROUNDS = 25
/** The first rounds of a data directory kill its first start. */
const FIRST_STARTS = 3
/**
 * After this many rounds the new parts of strands are verified; at the end of a directory all strands are, from the
 * beginning.
 */
const VERIFIED_EVERY = 8

/**
 * Kills servers, and the commands that work on data directories, at random moments and checks what they left behind,
 * over and over: first starts, servers under load, starts after a crash, backups and restores.
 * @param {{rounds: number, seed: number, report?: (line: string) => void,
 *   afterKill?: (dataDir: string, random: () => number) => Promise<string>}} options with `afterKill` all rounds are on
 *   one directory and kill a server under load; it then does something to the directory, before that is checked
 * @returns {Promise<{faults: string[], answered: number, unanswered: number, records: number}>}
 */
export async function crashLoop({ rounds, seed, report = () => {}, afterKill }) {
  const random = seededRandom(seed)
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-crash-'))
  const total = { faults: [], answered: 0, unanswered: 0, records: 0 }
  const tell = (line, round) => report(`round ${round + 1}/${rounds}: ${line}`)
  try {
    const most = afterKill === undefined ? LIFE_ROUNDS : rounds
    for (let first = 0; first < rounds && total.faults.length === 0; first += most) {
      const place = join(directory, `life-${first}`)
      mkdirSync(place)
      const life = new Life(place, random)
      const count = Math.min(most, rounds - first)
      await live(life, { count, afterKill, report: (line, round) => tell(line, first + round) })
      total.faults.push(...life.faults)
      total.answered += life.answered
      total.unanswered += life.unanswered
      total.records += life.records
      if (total.faults.length === 0) rmSync(place, { recursive: true, force: true })
    }
    return total
  } finally {
    if (total.faults.length > 0) report(`what is there is kept: ${directory}`)
    else rmSync(directory, { recursive: true, force: true })
  }
}

async function live(life, { count, afterKill, report }) {
  const kinds = new RoundKinds(life)
  const firstStarts = afterKill === undefined ? Math.min(FIRST_STARTS, count - 1) : 0
  try {
    for (let round = 0; round < count && life.faults.length === 0; round++) {
      if (round < firstStarts) {
        report(await kinds.firstStart(), round)
        continue
      }
      const done = afterKill === undefined ? await kinds.any() : await kinds.underLoad(afterKill)
      const whole = round === count - 1
      const strands = whole || round % VERIFIED_EVERY === VERIFIED_EVERY - 1
      // A round that killed no server left nothing new to check.
      const found = life.isRunning && !strands ? 'the server ran on' : await life.check({ strands, whole })
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
