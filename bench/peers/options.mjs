import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { chooseGenerator } from '../options.mjs'
import { workloads } from './workloads.mjs'

/** How the comparison is called. */
export const usage = `Usage: npm run bench:peers -- [--quick] [--rounds N] [--seconds N] [--only WORKLOAD]... [--generator wrk|autocannon]
       [--product DIR] [--results FILE]
  --quick      one round of a second each; ratios are rough
  --rounds     3 unless given
  --seconds    of each load; 3 unless given
  --only       one of: ${workloads.map(({ id }) => id).join(', ')}; may be repeated
  --generator  for contenders over HTTP: wrk if it is installed, unless given
  --product    another checkout, whose build is measured instead of this one's
  --results    the file to which the results are appended: bench/peers.jsonl unless given, and none with --product
Peers that are not installed are skipped, each with a message. To install those of npm: npm ci in bench/peers
`

/**
 * How long and how often to measure.
 * @typedef {object} PeersPlan
 * @property {boolean} quick
 * @property {string[]} only ids of workloads; all when empty
 * @property {'wrk' | 'autocannon'} generator
 * @property {number} cores
 * @property {number} rounds each measures all contenders, one after another
 * @property {number} seconds of one load
 * @property {number} warmUpSeconds of load before the first round
 * @property {number} bulkRecords of a load that is limited by records, not by seconds
 * @property {string} [product] directory of another checkout, whose build is measured
 * @property {string} [results] the file to which the results are appended, if not the usual one
 */

/**
 * Reads the arguments.
 * @param {string[]} args
 * @returns {PeersPlan}
 * @throws {Error} when an argument is unknown or invalid
 */
export function readPeersPlan(args) {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      generator: { type: 'string' },
      product: { type: 'string' },
      results: { type: 'string' },
    },
  })
  const { quick, only, product, results } = values
  const unknown = only.find((name) => !workloads.some(({ id }) => id === name))
  if (unknown !== undefined) throw new Error(`No such workload: ${unknown}`)
  return {
    quick,
    only,
    product,
    results,
    generator: chooseGenerator(values.generator),
    cores: availableParallelism(),
    rounds: count('--rounds', values.rounds ?? (quick ? '1' : '3')),
    seconds: count('--seconds', values.seconds ?? (quick ? '1' : '3')),
    warmUpSeconds: 1,
    bulkRecords: quick ? 64_000 : 192_000,
  }
}

function count(name, text) {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`Expected a number from 1 on after ${name}`)
  return Number(text)
}
