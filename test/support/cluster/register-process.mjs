/*
 * A process that writes to the log of one shard in competition with others: it reads the log to its end and
 * appends, until it has won a number of segments. It prints the header of each segment that was acknowledged.
 */
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { SegmentRegister } from '../../../dist/src/cluster/database/register.js'
import { statementsOf } from '../../../dist/src/cluster/database/statements.js'

const [urls, tables, shardText, name, countText] = process.argv.slice(2)
const shard = Number(shardText)
const register = new SegmentRegister({
  urls: urls.split(' '),
  statements: statementsOf(tables),
  nowMs: () => performance.now(),
  chance: () => 0.5,
})

const beginning = { segment: -1, part: 0 }
let before = beginning
let end
async function readToEnd() {
  for (;;) {
    let rows
    try {
      rows = await register.read(shard, before, 100)
    } catch {
      // The primary is down, and no standby is promoted yet.
      await pause(10)
      continue
    }
    const last = rows.at(-1)
    if (last === undefined) return
    before = { segment: last.segment, part: last.part }
    end = { number: last.segment, hash: last.hash }
  }
}

for (let won = 0; won < Number(countText);) {
  await readToEnd()
  const header = `${end.number + 1} by ${name}`
  const hash = createHash('sha256').update(end.hash).update(header).digest()
  const parts = [{ blocks: Buffer.alloc(0), state: null }]
  const outcome = await register.append(end, { shard, number: end.number + 1, hash, header, parts })
  if (outcome.kind === 'durable') {
    console.log(header)
    won += 1
  } else if (outcome.kind !== 'fenced')
    throw new Error(`The append was ${outcome.kind}: ${outcome.reason ?? ''}`)
}
await register.close()
