/** Writes rows in a separate process as fast as it can, with a fixed number in each transaction. */
import { recordBody } from '../records.mjs'
import { percentile } from '../statistics.mjs'
import { openRecords } from './sqlite-records.mjs'

const BODIES = 1_000

process.once('message', ({ file, rowsPerTransaction, seconds }) => {
  const { insertAll, count, close } = openRecords(file)
  const bodies = Array.from({ length: BODIES }, (_, number) => JSON.stringify(recordBody(number)))
  const before = count()
  const times = []
  const startMs = performance.now()
  let atMs = startMs
  while (atMs - startMs < seconds * 1_000) {
    const from = (times.length * rowsPerTransaction) % BODIES
    insertAll(bodies.slice(from, from + rowsPerTransaction).map((body) => ({ agent: 'writer', body })))
    const nowMs = performance.now()
    times.push(nowMs - atMs)
    atMs = nowMs
  }
  const rows = times.length * rowsPerTransaction
  if (count() - before !== rows) throw new Error(`${rows} rows were written and ${count() - before} found`)
  close()
  const value = (rows / (atMs - startMs)) * 1_000
  process.send({ value, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }, () =>
    process.disconnect(),
  )
})
