import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LinkMessage } from '../../src/cluster/links/framing.js'
import { linkKeyOf } from '../../src/data/derived-keys.js'
import {
  type CommandFrame,
  decodeCommands,
  decodeOutcomes,
  encodeCommands,
  encodeOutcomes,
  type FrontFrame,
} from '../../src/protocol/frame.js'
import { shardOf } from '../../src/strand/placement.js'
import { type Lie, type LyingLink, type Receiver, startLyingLink } from '../support/cluster/lying-link.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne, testSeed } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

const shards = 4

/** Replaces a frame with content for a receiver. */
const frameLie =
  (receiver: Receiver, change: (frame: ArrayBuffer) => ArrayBuffer | undefined): Lie =>
  (message, to) => {
    const frame = message.kind === 'frame' && to === receiver ? change(message.frame) : undefined
    return frame && message.kind === 'frame' ? { ...message, frame } : undefined
  }
const changedOutcomes = (change: (outcomes: FrontFrame['outcomes']) => FrontFrame['outcomes']) =>
  frameLie('front', (frame) => {
    const whole = decodeOutcomes(frame)
    if (whole.outcomes.length === 0) return undefined
    return encodeOutcomes({ ...whole, outcomes: change(whole.outcomes) })
  })
const changedCommands = (change: (commands: CommandFrame) => CommandFrame) =>
  frameLie('owner', (frame) => encodeCommands(change(decodeCommands(frame))))
/** Flips all bits after the header. */
const garbage = (frame: ArrayBuffer) =>
  Uint8Array.from(new Uint8Array(frame), (byte, at) => (at < 8 ? byte : 255 - byte)).buffer
/** Replaces a value, or a frame, for the front. */
const value =
  (content: unknown): Lie =>
  (message, to): LinkMessage | undefined =>
    to === 'front' && message.kind === 'frame' ? { kind: 'value', value: content } : undefined

const unreadable = 'a message of its thread is unreadable'
const invalid = 'the peer sent an invalid frame'

/** Messages of a node that has the key of the cluster and is damaged, and what the receiver logs. */
const lies: [name: string, lie: Lie, logged: string][] = [
  ['answers that cannot be decoded', frameLie('front', garbage), unreadable],
  ['an empty answer', frameLie('front', () => new ArrayBuffer(0)), unreadable],
  [
    'answers to other commands',
    changedOutcomes((all) => all.map(([id, one]) => [id + 1_280, one])),
    unreadable,
  ],
  ['a shard that does not exist', value({ kind: 'joined', shard: 99, term: 1 }), 'Assertion failed'],
  ['a message of an unknown kind', value({ kind: 'farewell' }), 'unknown message'],
  ['commands that cannot be decoded', frameLie('owner', garbage), invalid],
  ['an empty command', frameLie('owner', () => new ArrayBuffer(0)), 'outside the bounds'],
  [
    'commands of another front',
    changedCommands((all) => all.map(([id, one]) => [id - (id % 128), one])),
    invalid,
  ],
]

describe.skipIf(noPostgres)('a node that sends false messages over its links', () => {
  let cluster: ClusterOfOne
  let link: LyingLink
  let owner: TestServer
  let front: TestServer
  /** An agent of each node. */
  let ofOwner: string
  let ofFront: string
  const written = new Map<string, string>()

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', `${shards}`])).toMatchObject({ status: 0 })
    const directory = cluster.newPath('links')
    mkdirSync(directory)
    const file = join(directory, 'owner.port')
    link = await startLyingLink(linkKeyOf(Buffer.from(testSeed, 'hex')), () =>
      Number(readFileSync(file, 'utf8')),
    )
    const start = (node: string, host: string, env: Record<string, string> = {}) =>
      cluster.start({
        env: { SERVICE_CLUSTER_NODE: node, SERVICE_CLUSTER_LINK_ADDRESS: `${host}:0`, ...env },
        nodeOptions: [
          '--import',
          new URL('../support/cluster/rounds/link-proxies.mjs', import.meta.url).href,
        ],
      })
    owner = await start('owner', 'owner.nodes.test', { TEST_LINK_WAYS: '{}' })
    const ways = { 'owner.nodes.test': { file, port: link.port } }
    front = await start('front', '127.0.0.1', { TEST_LINK_WAYS: JSON.stringify(ways) })
    let owned: number[][] = []
    await eventually(async () => {
      const { body } = await call(owner, 'GET /v1/server')
      const members: { owned_shards: number[] }[] = body.cluster?.members ?? []
      owned = members.map(({ owned_shards: own }) => own)
      return owned.length === 2 && owned.every(({ length }) => length === shards / 2)
    })
    const agents = Array.from({ length: 100 }, (_none, n) => `agent-${n}`)
    const [first, second] = owned.map((own) => agents.find((agent) => own.includes(shardOf(agent, shards))))
    ;[ofFront, ofOwner] = [first ?? '', second ?? '']
    for (const server of [front, owner])
      await eventually(async () => (await call(server, 'GET /readyz')).status === 200)
  })

  afterAll(async () => {
    link?.stop()
    await cluster?.remove()
  })

  const write = async (server: TestServer, agent: string): Promise<number> => {
    const { status, body } = await call(server, `POST /v1/collections/${agent}/records`, {
      body: { data: { written: written.size } },
    })
    if (status !== 201) return status
    expect(written.has(body.content_hash)).toBe(false)
    written.set(body.content_hash, agent)
    return status
  }

  it.each(lies)('loses its link, and nothing else: %s', async (_name, lie, logged) => {
    const count = (text: string) => (owner.stderr() + front.stderr()).split(text).length - 1
    const before = count(logged)
    const replaced = new AbortController()
    void link.replaceOne(lie).then(() => replaced.abort())
    const statuses = new Set<number>()
    while (!replaced.signal.aborted) statuses.add(await write(front, ofOwner))
    await eventually(() => count(logged) > before)
    for (const [server, agent] of [
      [owner, ofOwner],
      [front, ofFront],
    ] as const)
      expect(await write(server, agent)).toBe(201)
    await eventually(async () => {
      const status = await write(front, ofOwner)
      statuses.add(status)
      return status === 201
    })
    expect([...statuses].filter((status) => status !== 201 && status !== 503)).toEqual([])
    for (const server of [owner, front])
      expect([server.process.exitCode, server.process.signalCode]).toEqual([null, null])
  })

  it('has damaged nothing that was confirmed', async () => {
    const read = async (agent: string, hash: string) =>
      (await call(front, `GET /v1/agents/${agent}/records/${hash}`)).status
    // After the last lie, the new link first gets the permission to answer reads.
    const [[hash = '', agent = ''] = []] = written
    await eventually(async () => (await read(agent, hash)) !== 503)
    for (const [one, of] of written) expect(await read(of, one)).toBe(200)
    expect(owner.stderr() + front.stderr()).not.toContain('a shard thread ended')
    for (const server of [owner, front]) expect(await server.halt()).toBe(0)
  })
})
