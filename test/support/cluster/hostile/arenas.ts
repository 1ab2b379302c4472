import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../../eventually.js'
import type { TestServer } from '../../server/server.js'
import { askNode } from '../rounds/cluster-client.js'
import { Clients, look, patienceMs, strandOf } from './history.js'
import { headsRootOf, type HostileCluster, nodeNames, serves, shardCount } from './hostile-cluster.js'
import { type Allowed, type Belief, isRefusal, lies, reasons, wrongWords } from './oracle.js'

/** What an attack does, given the tables as they are. It may be called while nodes run. */
export type Strike = () => Promise<void>

/** Where an attack is tried: what it led to that is neither the truth nor a refusal. */
export type Arena = (
  hostile: HostileCluster,
  strike: Strike,
  allowed: () => Promise<Allowed>,
) => Promise<string[]>

const [first, other] = nodeNames

/** How long a node may take until it serves or has said why it does not, milliseconds. */
const LIMIT_MS = 30_000
/** For how long it has to say so before it counts: it may be about to start. */
const SAID_MS = 1_500
/** How far behind a node is at most that has what was there when it was asked, seconds: it reads several times as often. */
const LAG_SECS = 0.5

/** A node with an empty directory starts. */
const freshStart: Arena = async (hostile, strike, allowed) => {
  await strike()
  return started(
    hostile,
    { name: other, dataDir: hostile.cluster.place('data') },
    { ...hostile.belief, allowed: await allowed() },
  )
}

/** The node that has served starts again, on its directory: it knows how far the logs went. */
const restart: Arena = async (hostile, strike) => {
  await strike()
  return started(hostile, { name: first, dataDir: hostile.keptCopy() }, hostile.belief)
}

/** The node that serves runs meanwhile, answers, is killed, and starts again. */
const running: Arena = async (hostile, strike) => {
  const dataDir = hostile.keptCopy()
  const node = await hostile.start(first, dataDir)
  await serves(node)
  await strike()
  const found = await judged(node, hostile.belief)
  if (isOver(node)) return found
  // What it has written meanwhile is as true as what was there before.
  const belief = await grown(hostile.belief, node)
  await node.halt('SIGKILL')
  return [...found, ...(await started(hostile, { name: first, dataDir }, belief))]
}

/** A node that follows takes over from the one that served, whose tables were changed meanwhile. */
const takeOver: Arena = async (hostile, strike) => {
  const [owner, follower] = await two(hostile)
  await strike()
  await owner.halt('SIGKILL')
  return judged(follower, hostile.belief)
}

/** The same, of what is written behind the attack: the follower never sees how it was. */
const following: Arena = async (hostile, strike) => {
  const [owner, follower] = await two(hostile)
  await strike()
  const clients = new Clients(owner.url)
  // It may refuse.
  await clients.writeAll('which the follower has not seen').catch(() => undefined)
  const belief = await grown(hostile.belief, owner, clients.records)
  // Where the node that serves is, the one that stands by says.
  const found = await foreignAddresses(follower)
  await owner.halt('SIGKILL')
  return [...found, ...(await judged(follower, belief))]
}

/** A data directory is made of the tables, and where it is, a server of its own starts on it. */
const pulling: Arena = async (hostile, strike, allowed) => {
  await strike()
  const directory = hostile.cluster.place('pulled')
  const { status, stdout, stderr } = await hostile.pull(directory)
  const found = wrongWords(stderr)
  if (status !== 0)
    return reasons(stderr).length > 0 ? found : [...found, `The pull ended with ${status} and said nothing`]
  const root = headsRootOf(stdout)
  const mayBe = await allowed()
  if (mayBe === 'the truth' && root !== hostile.headsRoot)
    found.push(`The pull has the heads root ${root}, and not ${hostile.headsRoot}`)
  // Tokens are none of the directory's.
  const known = { ...hostile.belief.known, credentials: [] }
  return [
    ...found,
    ...(await judged(await hostile.startAlone(directory), { ...hostile.belief, known, allowed: mayBe })),
  ]
}

export const arenas = {
  'fresh start': freshStart,
  restart,
  running,
  'take-over': takeOver,
  following,
  pull: pulling,
}

/** The node that serves, and one that has followed it to the ends of the logs. */
async function two(hostile: HostileCluster): Promise<[TestServer, TestServer]> {
  const owner = await hostile.start(first, hostile.keptCopy())
  await serves(owner)
  const follower = await hostile.start(other)
  const stores = Array.from({ length: shardCount }, (_none, shard) =>
    join(follower.dataDir, `shard-${shard}`, 'data.mdb'),
  )
  await eventually(async () => {
    const metrics = await askNode(follower.url, { method: 'GET', path: '/metrics' })
    const lag = /^strandfast_cluster_lag_seconds (\S+)$/m.exec(metrics?.text ?? '')?.[1]
    return stores.every((store) => existsSync(store)) && Number(lag ?? Infinity) < LAG_SECS
  })
  return [owner, follower]
}

/** What clients have been answered since. */
async function grown(
  { known, truth, ...more }: Belief,
  { url }: TestServer,
  records: readonly string[] = [],
): Promise<Belief> {
  const all = { ...known, records: [...known.records, ...records] }
  const now = [...(await look(url, all))].filter(([, answer]) => !isRefusal(answer))
  return { ...more, known: all, truth: new Map([...truth, ...now]) }
}

async function started(
  hostile: HostileCluster,
  { name, dataDir }: { name: (typeof nodeNames)[number]; dataDir: string },
  belief: Belief,
): Promise<string[]> {
  let said = ''
  const starting = hostile.start(name, dataDir, (text) => (said += text))
  const became = await Promise.race([starting.catch(() => 'ended'), refusal(() => said)])
  if (typeof became === 'object') return judged(became, belief)
  if (became === 'silent') return [`The node neither listens nor says why within ${LIMIT_MS} ms`]
  return reasons(said).length > 0 ? wrongWords(said) : ['The node has ended and said nothing']
}

/** Resolves when a node that does not listen yet has said why for some time, or for too long nothing. */
async function refusal(said: () => string): Promise<'refuses' | 'silent'> {
  for (const untilMs = performance.now() + LIMIT_MS; performance.now() < untilMs; await pause(50)) {
    if (reasons(said()).length === 0) continue
    await pause(SAID_MS)
    return 'refuses'
  }
  return 'silent'
}

/** Waits until a node serves or says why it does not, and holds what it answers to the truth. */
async function judged(node: TestServer, belief: Belief): Promise<string[]> {
  const found: string[] = []
  const state = await outcome(node, found)
  if (state === 'silent')
    found.push(`The node neither serves nor says why within ${LIMIT_MS} ms: ${await readiness(node)}`)
  found.push(...(await lies(node.url, belief)))
  if (await hangs(node)) found.push(`The node runs and does not answer within ${patienceMs} ms`)
  found.push(...wrongWords(node.stderr(), node.process.signalCode))
  return found
}

/** Whether an answer is waited for too long: a node that is about to end refuses connections. */
async function hangs({ url }: TestServer): Promise<boolean> {
  const sinceMs = performance.now()
  const answer = await askNode(url, { method: 'GET', path: strandOf('notes') }, patienceMs)
  return answer === undefined && performance.now() >= sinceMs + patienceMs
}

async function outcome(node: TestServer, found: string[]): Promise<'serves' | 'refuses' | 'silent'> {
  const before = reasons(node.stderr()).length
  let saidAtMs: number | undefined
  for (const untilMs = performance.now() + LIMIT_MS; performance.now() < untilMs; await pause(50)) {
    found.push(...(await foreignAddresses(node)))
    if (found.length > 0) return 'serves'
    if (isOver(node)) return reasons(node.stderr()).length > 0 ? 'refuses' : 'silent'
    const ready = await askNode(node.url, { method: 'GET', path: '/readyz' })
    if (ready?.status === 200) return 'serves'
    if (reasons(node.stderr()).length > before) saidAtMs ??= performance.now()
    if (saidAtMs !== undefined && performance.now() > saidAtMs + SAID_MS) return 'refuses'
  }
  return 'silent'
}

/** Where a node names the address of no node. */
async function foreignAddresses({ url }: TestServer): Promise<string[]> {
  const paths = ['/readyz', '/v1/server', '/v1/agents/notes/head']
  const answers = await Promise.all(paths.map((path) => askNode(url, { method: 'GET', path })))
  const wrong = paths.filter((_path, nth) => answers[nth]?.text.includes(foreignAddress))
  return wrong.map((path) => `${path} names ${foreignAddress} as the address of a node`)
}

/** Where somebody else's console listens. */
export const foreignAddress = 'http://console.example'

function isOver({ process }: TestServer): boolean {
  return process.exitCode !== null || process.signalCode !== null
}

async function readiness({ url }: TestServer): Promise<string> {
  const ready = await askNode(url, { method: 'GET', path: '/readyz' })
  return `${ready?.status} ${ready?.text}`
}
