/*
 * A node that is nothing but a member: it prints a line of JSON for all that happens to it, with the time of the machine's
 * clock. As long as its lease holds it answers, every few milliseconds. It leaves at SIGTERM.
 */
import { machineClock } from '../../../dist/src/base/clock.js'
import { assign } from '../../../dist/src/cluster/members/placement.js'
import { Membership, NameTaken } from '../../../dist/src/cluster/members/membership.js'
import { NodeTable } from '../../../dist/src/cluster/database/nodes.js'
import { Session } from '../../../dist/src/cluster/database/session.js'
import { statementsOf } from '../../../dist/src/cluster/database/statements.js'
import { LeaseMemory } from '../../../dist/src/protocol/lease-memory.js'

const [urls, tables, node, leaseText] = process.argv.slice(2)
const leaseMs = Number(leaseText)
const say = (event, more = {}) => console.log(JSON.stringify({ event, node, atMs: machineClock(), ...more }))

const statements = statementsOf(tables)
const lease = new LeaseMemory()

/** The table, which says whom it has expelled. */
async function connect() {
  const secret = { key: Buffer.alloc(32), cluster: tables }
  const table = new NodeTable(await Session.open(urls.split(' ')), statements, { secret })
  return {
    all: () => table.all(),
    join: (about) => table.join(about),
    beat: (last, next) => table.beat(last, next),
    drop: () => table.drop(),
    async expel(seen) {
      // Whoever takes over may open from here on.
      const isDone = await table.expel(seen)
      if (isDone) say('expelled', { whom: `${seen.node} ${seen.incarnation}` })
      return isDone
    },
  }
}

const membership = new Membership({
  about: { node, address: `${node}.example:1`, formatMax: 1, settingsDigest: `lease ${leaseMs}` },
  leaseMs,
  leaseMsOf: ({ settingsDigest }) => Number(settingsDigest.split(' ')[1]),
  lease,
  nowMs: machineClock,
  connect,
  changed(members) {
    const names = members.map((one) => one.node).sort()
    const owners = assign(names, { shards: 8, copies: 2 }).map(({ owner }) => owner)
    say('members', { names, owners })
  },
  answers: () => false,
  trouble: (error) => say('trouble', { message: error.message }),
  distrusts: (faults) => say('distrusts', { message: faults.map(({ reason }) => reason).join() }),
  expelled: () => {
    say('ended')
    process.exitCode = 3
    clearInterval(answering)
  },
})

process.once('SIGTERM', () => {
  clearInterval(answering)
  void membership.leave().then(() => say('left'))
})

let answering
try {
  const incarnation = await membership.join()
  say('joined', { incarnation })
  membership.start()
  answering = setInterval(() => {
    const atMs = machineClock()
    if (lease.holds()) say('answered', { atMs, incarnation })
  }, 5)
} catch (error) {
  say(error instanceof NameTaken ? 'taken' : 'failed', { message: error.message })
  process.exitCode = 1
}
