/**
 * Kills servers under load, their starts, backups and restores with SIGKILL at random moments and checks after each kill
 * that everything that was answered is there, that nothing is there twice, that every strand verifies, and that no part
 * of a backup or of a restore is taken for a whole one. Ends with 1 when anything is wrong.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { crashLoop } from './crash-loop/loop.mjs'
import { reshardAndKill } from './crash-loop/reshard.mjs'

const usage = `Usage: npm run crash -- [--rounds N] [--seed N]
  --rounds  how often something is killed (50)
  --seed    repeats a run's load and its moments (random)
  --reshard kills servers only, and moves the directory to another number of shards after each kill, killing that too
`

const options = readOptions()
if (options === undefined) {
  process.stderr.write(usage)
  process.exitCode = 78
} else {
  process.stdout.write(`seed ${options.seed}\n`)
  const report = (line) => process.stdout.write(`${line}\n`)
  const { rounds, seed, reshard } = options
  const afterKill = reshard ? reshardAndKill : undefined
  const { faults, answered, unanswered, records } = await crashLoop({ rounds, seed, report, afterKill })
  for (const fault of faults) process.stderr.write(`FAULT: ${fault}\n`)
  process.stdout.write(`${answered} calls answered, ${unanswered} not, ${records} records; `)
  process.stdout.write(faults.length === 0 ? 'nothing lost, nothing twice\n' : `${faults.length} faults\n`)
  process.exitCode = faults.length === 0 ? 0 : 1
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: { rounds: { type: 'string' }, seed: { type: 'string' }, reshard: { type: 'boolean' } },
    })
    const rounds = Number(values.rounds ?? 50)
    const seed = Number(values.seed ?? randomInt(2 ** 31))
    const reshard = values.reshard ?? false
    return Number.isInteger(rounds) && rounds > 0 && Number.isInteger(seed)
      ? { rounds, seed, reshard }
      : undefined
  } catch {
    return undefined
  }
}
