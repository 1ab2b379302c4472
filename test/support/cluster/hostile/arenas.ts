import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../../eventually.js'
import type { TestServer } from '../../server/server.js'
import { requestNode } from '../rounds/cluster-client.js'
import { agents, answerTimeoutMs, Clients, headOf, look, strandOf } from './history.js'
import { headsRootOf, type HostileCluster, nodeNames, serves, shardCount } from './hostile-cluster.js'
import { type Allowed, type Belief, isRefusal, falseAnswers, reasons, processFaults } from './oracle.js'

/** Runs an attack on the tables as they are; nodes may be running. */
export type RunAttack = () => Promise<void>

/** The setting of an attack. @returns results that are neither the truth nor a refusal */
export type Arena = (
  hostile: HostileCluster,
  attack: RunAttack,
  allowed: () => Promise<Allowed>,
) => Promise<string[]>

const [first, other] = nodeNames

/** Time within which a node must serve or report why it does not, milliseconds. */
const LIMIT_MS = 30_000
/**
 * Time for which the reason must be logged before it counts, milliseconds; the node may be about to start.
 */
const SAID_MS = 1_500

/** A node starts with an empty directory. */
const freshStart: Arena = async (hostile, attack, allowed) => {
  await attack()
  return started(
    hostile,
    { name: other, dataDir: hostile.cluster.newPath('data') },
    { ...hostile.belief, allowed: await allowed() },
  )
}

/** The node that has served starts again with its directory: it knows the ends of the logs. */
const restart: Arena = async (hostile, attack) => {
  await attack()
  return started(hostile, { name: first, dataDir: hostile.keptCopy() }, hostile.belief)
}

/** The serving node continues to run, answers, is killed, and starts again. */
const running: Arena = async (hostile, attack) => {
  const dataDir = hostile.keptCopy()
  const node = await hostile.start(first, dataDir)
  await serves(node)
  const before = reasons(node.stderr()).length
  await attack()
  const found = await judged(node, hostile.belief, before)
  if (isOver(node)) return found
  // What the node has written since is as true as what was written before.
  const belief = await extended(hostile.belief, node)
  await node.halt('SIGKILL')
  return [...found, ...(await started(hostile, { name: first, dataDir }, belief))]
}

/** A following node takes over from the serving node, whose tables were changed in between. */
const takeOver: Arena = async (hostile, attack) => {
  const [owner, follower] = await two(hostile)
  const before = reasons(follower.stderr()).length
  await attack()
  await owner.halt('SIGKILL')
  return judged(follower, hostile.belief, before)
}

/** The same for records written after the attack: the follower never sees the originals. */
const following: Arena = async (hostile, attack) => {
  const [owner, follower] = await two(hostile)
  const before = reasons(follower.stderr()).length
  await attack()
  const clients = new Clients(owner.url)
  // The node may refuse.
  await clients.writeAll('which the follower has not seen').catch(() => undefined)
  const belief = await extended(hostile.belief, owner, clients.records)
  // A standby names the address of the serving node.
  const found = await foreignAddresses(follower)
  await owner.halt('SIGKILL')
  return [...found, ...(await judged(follower, belief, before))]
}

/**
 * A data directory is pulled from the tables; if that succeeds, a server outside a cluster starts with it.
 */
const pulling: Arena = async (hostile, attack, allowed) => {
  await attack()
  const directory = hostile.cluster.newPath('pulled')
  const { status, stdout, stderr } = await hostile.pull(directory)
  const found = processFaults(stderr)
  if (status !== 0)
    return reasons(stderr).length > 0 ? found : [...found, `The pull ended with ${status} and said nothing`]
  const root = headsRootOf(stdout)
  const mayBe = await allowed()
  if (mayBe === 'the truth' && root !== hostile.headsRoot)
    found.push(`The pull has the heads root ${root}, and not ${hostile.headsRoot}`)
  // Tokens do not belong to the directory.
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

interface ClusterView {
  members: { node: string; held_shards: number[] }[]
}

/** Starts the serving node, and one that has followed it to the ends of the logs. */
async function two(hostile: HostileCluster): Promise<[TestServer, TestServer]> {
  const owner = await hostile.start(first, hostile.keptCopy())
  await serves(owner)
  const follower = await hostile.start(other)
  await eventually(async () => {
    const answer = await requestNode(owner.url, { method: 'GET', path: '/v1/server' })
    const { cluster }: { cluster?: ClusterView } = JSON.parse(answer?.text ?? '{}')
    const held = cluster?.members.find(({ node }) => node === other)?.held_shards
    return held?.length === shardCount
  })
  return [owner, follower]
}

/** Adds what clients have been answered since. */
async function extended(
  { known, truth, ...more }: Belief,
  { url }: TestServer,
  records: readonly string[] = [],
): Promise<Belief> {
  const all = { ...known, records: [...known.records, ...records] }
  const now = await look(url, all)
  const answers = new Map([...now].filter(([, answer]) => !isRefusal(answer)))
  // A refusal does not say what was written before it.
  const refused = agents
    .flatMap((agent) => [headOf(agent), strandOf(agent)])
    .filter((question) => !answers.has(question))
  return { ...more, known: all, truth: new Map([...truth, ...answers]), refused: new Set(refused) }
}

async function started(
  hostile: HostileCluster,
  { name, dataDir }: { name: (typeof nodeNames)[number]; dataDir: string },
  belief: Belief,
): Promise<string[]> {
  let said = ''
  const starting = hostile.start(name, dataDir, (text) => (said += text))
  const result = await Promise.race([starting.catch(() => 'ended'), refusal(() => said)])
  if (typeof result === 'object') return judged(result, belief)
  if (result === 'silent') return [`The node neither listens nor reports a reason within ${LIMIT_MS} ms`]
  return reasons(said).length > 0 ? processFaults(said) : ['The node has ended without reporting a reason']
}

/**
 * Resolves when a node that does not listen yet has reported a reason for some time, or nothing for too long.
 */
async function refusal(said: () => string): Promise<'refuses' | 'silent'> {
  for (const untilMs = performance.now() + LIMIT_MS; performance.now() < untilMs; await pause(50)) {
    if (reasons(said()).length === 0) continue
    await pause(SAID_MS)
    return 'refuses'
  }
  return 'silent'
}

/**
 * Waits until a node serves or reports why it does not, and compares its answers with the truth.
 * @param before the number of its reasons before the attack, because it may report before this is called
 */
async function judged(node: TestServer, belief: Belief, before = 0): Promise<string[]> {
  const found: string[] = []
  const state = await outcome(node, found, before)
  if (state === 'silent')
    found.push(`The node neither serves nor reports a reason within ${LIMIT_MS} ms: ${await readiness(node)}`)
  found.push(...(await falseAnswers(node.url, belief)))
  if (await hangs(node)) found.push(`The node runs and does not answer within ${answerTimeoutMs} ms`)
  found.push(...processFaults(node.stderr(), node.process.signalCode))
  return found
}

/** Whether an answer takes too long; a node that is about to end refuses connections instead. */
async function hangs({ url }: TestServer): Promise<boolean> {
  const sinceMs = performance.now()
  const answer = await requestNode(url, { method: 'GET', path: strandOf('notes') }, answerTimeoutMs)
  return answer === undefined && performance.now() >= sinceMs + answerTimeoutMs
}

async function outcome(
  node: TestServer,
  found: string[],
  before: number,
): Promise<'serves' | 'refuses' | 'silent'> {
  let saidAtMs: number | undefined
  for (const untilMs = performance.now() + LIMIT_MS; performance.now() < untilMs; await pause(50)) {
    found.push(...(await foreignAddresses(node)))
    if (found.length > 0) return 'serves'
    if (isOver(node)) return reasons(node.stderr()).length > 0 ? 'refuses' : 'silent'
    const ready = await requestNode(node.url, { method: 'GET', path: '/readyz' })
    if (ready?.status === 200) return 'serves'
    if (reasons(node.stderr()).length > before) saidAtMs ??= performance.now()
    if (saidAtMs !== undefined && performance.now() > saidAtMs + SAID_MS) return 'refuses'
  }
  return 'silent'
}

/** Finds answers in which a node names a foreign address. */
async function foreignAddresses({ url }: TestServer): Promise<string[]> {
  const paths = ['/readyz', '/v1/server', '/v1/agents/notes/head']
  const answers = await Promise.all(paths.map((path) => requestNode(url, { method: 'GET', path })))
  const foreign = paths.filter((_path, nth) => answers[nth]?.text.includes(foreignAddress))
  return foreign.map((path) => `${path} names ${foreignAddress} as the address of a node`)
}

/** The address of an attacker's console. */
export const foreignAddress = 'http://console.example'

function isOver({ process }: TestServer): boolean {
  return process.exitCode !== null || process.signalCode !== null
}

async function readiness({ url }: TestServer): Promise<string> {
  const ready = await requestNode(url, { method: 'GET', path: '/readyz' })
  return `${ready?.status} ${ready?.text}`
}
