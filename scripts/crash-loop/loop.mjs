import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Checker } from './check.mjs'
import { between, seededRandom } from './seeded-random.mjs'
import { startVictim } from './victim.mjs'

/** How long a start lives that is killed before it is loaded, milliseconds at most. */
const START_MS_MAX = 600
/** How long a server is loaded before it is killed, milliseconds. */
const LOADED_MS = { least: 20, most: 600 }

/** Every so many rounds, and at the last, all strands are read from their beginning. */
const WHOLE_EVERY = 10

/**
 * Kills a server under load and checks what it left behind, over and over on the same data directory.
 * @param {{rounds: number, seed: number, report?: (line: string) => void,
 *   afterKill?: (dataDir: string, random: () => number) => Promise<string>}} options `afterKill` does something to the
 *   directory of a server that was killed, before it is checked
 * @returns {Promise<{faults: string[], answered: number, unanswered: number, records: number}>}
 */
export async function crashLoop({ rounds, seed, report = () => {}, afterKill }) {
  const random = seededRandom(seed)
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-crash-'))
  const dataDir = join(directory, 'data')
  const load = fork(fileURLToPath(new URL('load.mjs', import.meta.url)), { execArgv: [] })
  const checker = new Checker()
  const total = { faults: [], answered: 0, unanswered: 0, records: 0 }
  try {
    for (let round = 0; round < rounds && total.faults.length === 0; round++) {
      // The very first starts are killed too: they make the data directory.
      const starts = round === 0 ? 3 : Number(random() < 0.25)
      for (let start = 0; start < starts; start++) await killStart(dataDir, between(random, 0, START_MS_MAX))
      const about = { round, random, load, dataDir }
      const { journal, livedMs } = await killUnderLoad(about)
      const done = await afterKill?.(dataDir, random)
      // Counted before the check, which sends some again.
      const answered = journal.filter(({ answer }) => answer !== undefined).length
      const whole = round % WHOLE_EVERY === WHOLE_EVERY - 1 || round === rounds - 1
      const result = await checkAfter(dataDir, checker, { journal, whole })
      total.answered += answered
      total.unanswered += journal.length - answered
      total.records = result.records
      total.faults.push(...result.faults)
      report(
        `round ${round + 1}/${rounds}: killed after ${livedMs} ms; ${done === undefined ? '' : `${done}; `}${answered} calls answered, ` +
          `${journal.length - answered} not; ${result.records} records on ${result.strands} strands; ` +
          (result.faults.length === 0 ? 'all there' : `${result.faults.length} faults`),
      )
    }
    return total
  } finally {
    load.disconnect()
    if (total.faults.length > 0) report(`the data directory is kept: ${dataDir}`)
    else rmSync(directory, { recursive: true, force: true })
  }
}

async function killStart(dataDir, livesMs) {
  const victim = startVictim(dataDir)
  // Looked at later, or never: a start that fails by itself fails the next round too.
  const listening = victim.listening().catch(() => undefined)
  await pause(livesMs)
  await victim.kill()
  await listening
}

/** @returns {Promise<{journal: import('./check.mjs').Entry[], livedMs: number}>} */
async function killUnderLoad({ round, random, load, dataDir }) {
  const victim = startVictim(dataDir)
  try {
    const url = await victim.listening()
    load.send({ url, seed: between(random, 0, 2 ** 31), prefix: `r${round}` })
    const livedMs = between(random, LOADED_MS.least, LOADED_MS.most)
    await pause(livedMs)
    await victim.kill()
    // Counted after the kill: all that the load was answered, it was answered before.
    const journaled = once(load, 'message')
    load.send('stop')
    const [{ journal }] = await journaled
    return { journal, livedMs }
  } finally {
    await victim.kill()
  }
}

async function checkAfter(dataDir, checker, about) {
  const victim = startVictim(dataDir)
  try {
    const url = await victim.listening()
    const result = await checker.check(url, about)
    const code = await victim.stop()
    if (code !== 0) result.faults.push(`The server stopped with ${code}:\n${victim.stderr()}`)
    return result
  } finally {
    await victim.kill()
  }
}
