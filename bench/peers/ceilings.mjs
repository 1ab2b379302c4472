import { argon2Rate } from '../ceilings/argon2.mjs'
import { signRate } from '../ceilings/sign-rate.mjs'
import { prepareLoad, runCleanly } from '../load.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { startEcho } from '../scenarios/alternation.mjs'
import { credential } from '../server.mjs'

const AGENTS = 100
const WRITES = 2_000

/**
 * The ceilings of this machine: a bare server, and bare signatures and hashes.
 * @type {import('./peer.mjs').Peer}
 */
export const ceilings = {
  name: 'Ceilings',
  kinds: ['writes', 'bulk', 'sign-in'],
  missing: () => undefined,
  async start({ plan, directory }, kind) {
    if (kind !== 'writes') {
      const contenders = () => [kind === 'bulk' ? signatures(plan) : hashes(plan)]
      return { version: '', contenders, stop: async () => {} }
    }
    const echo = await startEcho()
    const requests = writeRequests(agentNames('writer', AGENTS), { count: WRITES, headers: credential })
    const load = prepareLoad(requests, { generator: plan.generator, directory })
    const contenders = ({ connections }) => [
      {
        name: 'bare uWebSockets.js',
        role: 'ceiling',
        note: 'HTTP; parses the body and answers a fixed text; keeps nothing',
        async measure(seconds) {
          const { perSecond, p50Ms, p99Ms } = await runCleanly(load, echo.url, { connections, seconds })
          return { value: perSecond, p50Ms, p99Ms }
        },
      },
    ]
    return { version: '', contenders, stop: echo.stop }
  },
}

function signatures({ cores }) {
  return {
    name: 'bare Ed25519 signatures',
    role: 'ceiling',
    note: `sodium on ${cores} threads and nothing else`,
    measure: async (seconds) => ({ value: await signRate({ threads: cores, durationMs: seconds * 1_000 }) }),
  }
}

function hashes({ cores }) {
  return {
    name: 'bare argon2id',
    role: 'ceiling',
    note: `19 MiB, 2 passes, on ${cores} threads and nothing else`,
    measure: async (seconds) => ({
      value: await argon2Rate({ threads: cores, durationMs: seconds * 1_000 }),
    }),
  }
}
