import { join } from 'node:path'
import { diskOf, writtenPerRecord } from '../disk.mjs'
import { runCleanly } from '../load.mjs'
import { countRecords, createAgents, startProduct } from '../server.mjs'
import { median, rounded } from '../statistics.mjs'
import { singleWrites } from '../writers.mjs'

const settings = [
  { connections: 1, target: { below: 5_000 } },
  { connections: 16, target: { below: 1_500 } },
  { connections: 64, target: { below: 900 } },
  { connections: 512, target: { below: 700 } },
]
/** If other processes write more than this share of all bytes, the rest does not describe the server. */
const REST_SHARE_MAX = 0.5

/**
 * The bytes that reach the disk for a record of 230 bytes, from the first write of a load until its server
 * has stopped and everything is in the store. The writes of other processes in a time of the same length are
 * subtracted.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function diskWrites(bench) {
  const { plan, directory, report } = bench
  const disk = diskOf(directory)
  if ('missing' in disk) return settings.map((one) => ({ name: nameOf(one), notMeasured: disk.missing }))
  const writers = singleWrites(bench)
  report('bytes to disk')
  for (const { connections } of settings) await prepare(bench, writers, connections)
  const rounds = []
  for (let number = 1; number <= plan.rounds; number++) {
    const rest = await disk.written(() => pause(plan.seconds * 1_000))
    const round = []
    for (const { connections } of settings) {
      const one = writtenPerRecord({ rest, ...(await measure(bench, { disk, writers, connections })) })
      const { bytes, writes, restShare } = one
      round.push(one)
      const others = `${percent(restShare)} by others`
      report(
        `  round ${number}, ${connections}: ${rounded(bytes)} bytes, ${rounded(writes)} writes a record, ${others}`,
      )
    }
    rounds.push(round)
  }
  return settings.map((setting, at) =>
    figureOf(
      setting,
      rounds.map((round) => round[at]),
    ),
  )
}

/** Creates agents and a store that has preallocated its files. */
async function prepare({ plan, directory }, { agents, load }, connections) {
  const product = await startProduct(storeOf(directory, connections))
  try {
    await createAgents(product.url, agents)
    await runCleanly(load, product.url, { connections, seconds: plan.warmUpSeconds })
  } finally {
    await product.stop()
  }
}

/** Runs a load until its server has stopped, which flushes all data. */
async function measure({ plan, directory }, { disk, writers, connections }) {
  const { agents, load } = writers
  const product = await startProduct(storeOf(directory, connections))
  let running = true
  try {
    const before = await countRecords(product.url, agents)
    let records = 0
    const written = await disk.written(async () => {
      const { requests } = await runCleanly(load, product.url, { connections, seconds: plan.seconds })
      records = (await countRecords(product.url, agents)) - before
      if (records < requests) throw new Error(`${requests} writes were answered and ${records} recorded`)
      running = false
      await product.stop()
    })
    return { written, records }
  } finally {
    if (running) await product.stop()
  }
}

function figureOf(setting, rounds) {
  const of = (name) => median(rounds.map((round) => round[name]))
  const name = nameOf(setting)
  if (of('restShare') > REST_SHARE_MAX)
    return { name, notMeasured: `other processes wrote ${percent(of('restShare'))} of the bytes to the disk` }
  return {
    name,
    value: of('bytes'),
    unit: 'bytes',
    target: setting.target,
    also: { disk_writes: rounded(of('writes')), share_of_others: rounded(of('restShare')) },
  }
}

function nameOf({ connections }) {
  return `to disk a record, ${connections === 1 ? '1 connection' : `${connections} connections`}`
}

function storeOf(directory, connections) {
  return join(directory, `disk-writes-${connections}`)
}

const percent = (share) => `${Math.round(share * 100)} %`

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
