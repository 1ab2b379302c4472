import { prepareLoad } from './load.mjs'
import { agentNames, writeRequests } from './records.mjs'
import { credential } from './server.mjs'

const AGENTS = 100
const REQUESTS = 2_000

/**
 * The load of single writes over 100 agents, which the caller has to create.
 * @param {import('./scenarios/alternation.mjs').Bench} bench
 * @param {number} [shards] over which the agents are distributed; one for each processor unless given
 * @returns {{agents: string[], load: import('./load.mjs').Load}}
 */
export function singleWrites({ plan, directory }, shards) {
  const agents = agentNames('writer', AGENTS, shards)
  const requests = writeRequests(agents, { count: REQUESTS, headers: credential })
  return { agents, load: prepareLoad(requests, { generator: plan.generator, directory }) }
}

/**
 * Throws unless every answered write is recorded. When a generator stops, each of its connections can have
 * one write in flight whose answer it never reads.
 * @param {{answered: number, recorded: number, inFlight: number}} counts
 */
export function checkCounts({ answered, recorded, inFlight }) {
  if (recorded >= answered && recorded <= answered + inFlight) return
  throw new Error(`${answered} writes were answered and ${recorded} recorded`)
}
