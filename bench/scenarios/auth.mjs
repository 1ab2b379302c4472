import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { argon2Rate } from '../ceilings/argon2.mjs'
import { prepareLoad, runCleanly } from '../load.mjs'
import { benchUsers, loginRequests, registerAll } from '../logins.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { call, createAgents, credential, startProductWithAuth } from '../server.mjs'
import { against, median } from '../statistics.mjs'

const USERS = 128
/** Concurrent logins for each hash thread: enough that no thread waits for work. */
const LOGINS_PER_THREAD = 16
/** The most hash threads of the server (src/base/limits/limits.ts, passwordThreadsMax). */
const HASH_THREADS_MAX = 16
const AGENTS = 100
const WRITES = 2_000
const WRITE_CONNECTIONS = 64
/** Seconds of logins before and after the writes that they disturb. */
const LOGIN_MARGIN_SECS = 1

/**
 * Logins with right passwords against bare argon2id on as many threads, and the effect of logins on single
 * durable writes.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function auth(bench) {
  const { plan, directory, report } = bench
  const product = await startProductWithAuth(join(directory, 'auth'))
  try {
    report('logins by password')
    const users = benchUsers(USERS)
    await registerAll(`${product.url}/v1/auth/register`, users)
    await checkOneLogin(product.url, users[0])
    const threads = Math.min(plan.cores, HASH_THREADS_MAX)
    const generator = { generator: plan.generator, directory }
    const logins = {
      load: prepareLoad(loginRequests(users), generator),
      connections: threads * LOGINS_PER_THREAD,
      threads,
    }
    const rate = await loginRate(bench, product.url, logins)
    report(`single writes, ${WRITE_CONNECTIONS} connections, without logins and with them`)
    const agents = agentNames('writer', AGENTS)
    await createAgents(product.url, agents)
    const writes = prepareLoad(writeRequests(agents, { count: WRITES, headers: credential }), generator)
    return [rate, await writesBesideLogins(bench, product.url, { writes, logins })]
  } finally {
    await product.stop()
  }
}

async function loginRate({ plan, report }, url, { load, connections, threads }) {
  const durationMs = plan.seconds * 1_000
  await runCleanly(load, url, { connections, seconds: plan.warmUpSeconds })
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const logins = await runCleanly(load, url, { connections, seconds: plan.seconds })
    const ceiling = await argon2Rate({ threads, durationMs })
    rounds.push({ value: logins.perSecond, ceiling, logins })
    const ratio = (logins.perSecond / ceiling).toFixed(3)
    report(`  round ${round}: ${logins.perSecond.toFixed(1)}/s of ${ceiling.toFixed(1)}/s, ${ratio}`)
  }
  return {
    name: `logins by password, ${connections} clients`,
    unit: 'logins/s',
    ...against(rounds),
    target: { ratio: 0.8 },
    also: { hash_threads: threads, p99_ms: median(rounds.map(({ logins }) => logins.p99Ms)) },
  }
}

async function writesBesideLogins({ plan, report }, url, { writes, logins }) {
  const shape = { connections: WRITE_CONNECTIONS, seconds: plan.seconds }
  await runCleanly(writes, url, { ...shape, seconds: plan.warmUpSeconds })
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const alone = await runCleanly(writes, url, shape)
    const beside = await besideLogins(url, logins, { writes, shape })
    rounds.push({ alone, ...beside, slower: beside.busy.p99Ms / alone.p99Ms })
    const times = rounds.at(-1).slower.toFixed(2)
    report(
      `  round ${round}: p99 ${beside.busy.p99Ms} ms with logins, ${alone.p99Ms} ms without, ${times} times`,
    )
  }
  const of = (figure) => median(rounds.map(figure))
  return {
    name: 'p99 of writes while logins keep every hash thread busy',
    value: of(({ slower }) => slower),
    unit: 'times that without',
    target: { below: 3 },
    also: {
      p99_ms: of(({ busy }) => busy.p99Ms),
      p99_alone_ms: of(({ alone }) => alone.p99Ms),
      writes_per_second: Math.round(of(({ busy }) => busy.perSecond)),
      writes_alone_per_second: Math.round(of(({ alone }) => alone.perSecond)),
      logins_per_second: of(({ loggedIn }) => loggedIn.perSecond),
    },
  }
}

/** Runs the writes while logins run, from before the first write until after the last one. */
async function besideLogins(url, { load, connections }, { writes, shape }) {
  const seconds = shape.seconds + 2 * LOGIN_MARGIN_SECS
  const loggingIn = runCleanly(load, url, { connections, seconds })
  const writing = pause(LOGIN_MARGIN_SECS * 1_000).then(() => runCleanly(writes, url, shape))
  const [busy, loggedIn] = await Promise.all([writing, loggingIn])
  return { busy, loggedIn }
}

/** Checks the token of one login; the load only counts its answers. */
async function checkOneLogin(url, body) {
  const { token } = await call(`${url}/v1/auth/login`, { body })
  const claims = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())
  if (claims.email !== body.email) throw new Error('The token is not that of the user who signed in')
}
