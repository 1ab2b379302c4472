/**
 * Kills servers under load, their starts, backups and restores with SIGKILL at random moments and checks after each
 * kill that everything that was answered is there, that nothing is there twice, that every strand verifies, and that an
 * incomplete backup or restore is never accepted as a complete one. Ends with 1 when anything is wrong.
 */
import { crashLoop } from './crash-loop/loop.mjs'
import { reshardAndKill } from './crash-loop/reshard.mjs'
import { seededRun } from './seeded-run.mjs'

await seededRun({
  usage: `Usage: npm run crash -- [--rounds N] [--reshard] [--seed N]
  --rounds N  how often something is killed (50)
  --reshard   kills servers only, and moves the directory to another number of shards after each kill, killing that too
`,
  options: { rounds: { type: 'string' }, reshard: { type: 'boolean' } },
  read({ rounds = '50', reshard = false }, positionals) {
    const count = Number(rounds)
    return Number.isInteger(count) && count > 0 && positionals.length === 0
      ? { rounds: count, reshard }
      : undefined
  },
  async run({ rounds, reshard, seed, report }) {
    const afterKill = reshard ? reshardAndKill : undefined
    const { faults, answered, unanswered, records } = await crashLoop({ rounds, seed, report, afterKill })
    const found = faults.length === 0 ? 'nothing lost, nothing twice' : `${faults.length} faults`
    return {
      faults,
      summary: [`${answered} calls answered, ${unanswered} not, ${records} records; ${found}`],
    }
  },
})
