import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'

/** How the bench is called. */
export const usage = `Usage: npm run bench -- [--quick] [--only NAME]... [--generator wrk|autocannon] [--agents N] [--records N]
       [--product DIR] [--results FILE]
  --quick      one short round each, about two minutes; ratios are rough
  --only       one scenario of: writes, lone-writes, latency, disk-writes, crash-start, ingest, otlp, get, latest, streams,
               memory, auth, user-tokens, namespaces, engines, fronts; may be repeated.
               Run only when named, because they take minutes and gigabytes, a browser or PostgreSQL: agents-million,
               strand-million, flatness, growth, console-tail, cluster, cluster-inserts; and the parts of cluster that can be
               run alone: cluster-engine, cluster-failovers, cluster-quotas, cluster-three
  --agents     number of agents of agents-million, and the most agents of flatness
  --records    number of records of strand-million, and the most records of flatness and growth
  --generator  wrk if it is installed, unless given
  --product    another checkout, whose build is measured instead of this one's
  --results    the file to which the results are appended: bench/results.jsonl unless given, and none with --product
`

/**
 * How long and how often to measure.
 * @typedef {object} Plan
 * @property {boolean} quick
 * @property {string[]} only names of scenarios; all when empty
 * @property {'wrk' | 'autocannon'} generator
 * @property {number} cores
 * @property {number} rounds each measures product and ceiling, one after the other
 * @property {number} seconds of one load
 * @property {number} warmUpSeconds of load before the first round
 * @property {number} ingestLines of one agent in one round
 * @property {number} signMs of one measurement of the sign rate
 * @property {number} syncMs of one measurement of the disk's sync
 * @property {number} storedRecords for get by hash
 * @property {number} streamEvents of one round
 * @property {number} idleAgents
 * @property {number} idleNamespaces
 * @property {number} manyAgents of agents-million
 * @property {number} manyRecords of strand-million
 * @property {number} flatAgents the most agents of flatness
 * @property {number} flatRecords the most records of flatness and growth
 * @property {string} [product] directory of another checkout, whose build is measured
 * @property {string} [results] the file to which the results are appended, if not the usual one
 */

/**
 * Reads the arguments.
 * @param {string[]} args
 * @returns {Plan}
 * @throws {Error} when an argument is unknown, or wrk is requested and not installed
 */
export function readPlan(args) {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      generator: { type: 'string' },
      agents: { type: 'string' },
      records: { type: 'string' },
      product: { type: 'string' },
      results: { type: 'string' },
    },
  })
  const generator = chooseGenerator(values.generator)
  const { quick, only, product, results } = values
  const amounts = quick
    ? { rounds: 1, seconds: 1, warmUpSeconds: 1, ingestLines: 2_500, signMs: 500, syncMs: 500 }
    : { rounds: 5, seconds: 4, warmUpSeconds: 2, ingestLines: 6_250, signMs: 1_000, syncMs: 2_000 }
  const sizes = quick
    ? { storedRecords: 20_000, streamEvents: 500, idleAgents: 100_000, idleNamespaces: 4_000 }
    : { storedRecords: 100_000, streamEvents: 1_000, idleAgents: 100_000, idleNamespaces: 10_000 }
  const many = quick
    ? { manyAgents: 100_000, manyRecords: 100_000, flatAgents: 10_000, flatRecords: 100_000 }
    : { manyAgents: 1_000_000, manyRecords: 1_000_000, flatAgents: 100_000, flatRecords: 10_000_000 }
  if (values.agents !== undefined) many.manyAgents = many.flatAgents = count(values.agents)
  if (values.records !== undefined) many.manyRecords = many.flatRecords = count(values.records)
  const where = { product, results }
  return { quick, only, ...where, generator, cores: availableParallelism(), ...amounts, ...sizes, ...many }
}

function count(text) {
  if (!/^[1-9]\d{3,8}$/.test(text)) throw new Error('Expected a number from 1000 to 999999999')
  return Number(text)
}

/**
 * The requested generator, or wrk if it is installed.
 * @param {string | undefined} requested
 * @returns {'wrk' | 'autocannon'}
 * @throws {Error} when there is no such generator, or wrk is requested and not installed
 */
export function chooseGenerator(requested) {
  const generator = requested ?? (isInstalled('wrk') ? 'wrk' : 'autocannon')
  if (generator !== 'wrk' && generator !== 'autocannon')
    throw new Error('Expected --generator wrk or autocannon')
  if (generator === 'wrk' && !isInstalled('wrk')) throw new Error('wrk is not installed')
  return generator
}

function isInstalled(command) {
  // wrk -v exits with 1, so only a failure to start shows that it is not installed.
  return spawnSync(command, ['-v'], { stdio: 'ignore' }).error === undefined
}
