/*
 * A node that is only a member: it prints each event as a line of JSON with the time of the machine's clock,
 * and "answers" every few milliseconds while its lease holds. It leaves at SIGTERM.
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
const report = (event, more = {}) =>
  console.log(JSON.stringify({ event, node, atMs: machineClock(), ...more }))

const statements = statementsOf(tables)
const lease = new LeaseMemory()

/** The table of nodes, with a report of each expulsion. */
async function connect() {
  const secret = { key: Buffer.alloc(32), cluster: tables }
  const table = new NodeTable(await Session.open(urls.split(' ')), statements, { secret })
  return {
    all: () => table.all(),
    join: (about) => table.join(about),
    heartbeat: (last, next) => table.heartbeat(last, next),
    drop: () => table.drop(),
    async expel(seen) {
      // From here on another node may take over.
      const isDone = await table.expel(seen)
      if (isDone) report('expelled', { whom: `${seen.node} ${seen.incarnation}` })
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
    report('members', { names, owners })
  },
  answers: () => false,
  trouble: (error) => report('trouble', { message: error.message }),
  faultsChanged: (faults) => report('distrusts', { message: faults.map(({ reason }) => reason).join() }),
  expelled: () => {
    report('ended')
    process.exitCode = 3
    clearInterval(answering)
  },
})

process.once('SIGTERM', () => {
  clearInterval(answering)
  void membership.leave().then(() => report('left'))
})

let answering
try {
  const incarnation = await membership.join()
  report('joined', { incarnation })
  membership.start()
  answering = setInterval(() => {
    const atMs = machineClock()
    if (lease.holds()) report('answered', { atMs, incarnation })
  }, 5)
} catch (error) {
  report(error instanceof NameTaken ? 'taken' : 'failed', { message: error.message })
  process.exitCode = 1
}
