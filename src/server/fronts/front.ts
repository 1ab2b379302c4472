import type { MessagePort } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import { systemClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import { createLogger, type Logger } from '../../base/log.js'
import { Peers } from '../../cluster/links/peers.js'
import { Calls, type Handlers } from '../../dispatch/calls.js'
import { RemoteGate } from '../../dispatch/duties/remote-gate.js'
import type { ShardConnection } from '../../dispatch/links/shard-connection.js'
import { Shards } from '../../dispatch/links/shards.js'
import { ApiKeyUpkeep } from '../../front/http/auth/api-key-upkeep.js'
import { listenAlong, type HttpShare } from '../../front/http/server.js'
import { sharedBounds } from '../../front/limits/bounds.js'
import { allRoutes } from '../../front/routes/routes.js'
import { Heartbeat } from '../../protocol/heartbeat.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import { ShardMemory } from '../../protocol/shard-memory.js'
import { makeAuth } from '../auth.js'
import type { FrontCalls, FrontGiven, MainCalls } from '../calls/front-messages.js'
import {
  remoteAuthServices,
  remoteReaders,
  remoteServices,
  remoteTickets,
  type ToMain,
} from '../calls/front-services.js'
import { readPages } from '../pages.js'
import { boundSettings, connectionBound, drain, makeFrontParts } from '../parts.js'
import { handlingOf } from '../requests.js'
import { figuresOf } from '../services.js'
import { frontListener } from '../shards.js'
import { Standing } from '../state.js'

/** Runs a front beside the main thread: takes requests, and is a client of the shards as the main thread is. */
export function runFront(given: FrontGiven, port: MessagePort): void {
  const log = createLogger(given.config.logLevel, `front-${given.front}`)
  const calls: Calls<FrontCalls, MainCalls> = new Calls(
    (message, transfer) => port.postMessage(message, transfer),
    handlersOf(() => front),
  )
  const front = makeFront(given, { calls, log })
  // The thread goes on until the main thread has it close: ended as it is, it would take the process along at once.
  process.on('uncaughtException', (error: unknown) => {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
    void calls.call('failed', stack)
  })
  const heartbeat = new Heartbeat(given.heartbeat)
  setInterval(() => heartbeat.beat(), limits.frontBeatMs).unref()
  // What arrives while the front is being made waits for it.
  void front.then(() => port.on('message', (message: unknown) => calls.take(message)))
}

/** A front, as a client of the shards. */
type Front = Awaited<ReturnType<typeof makeFront>>

/** Makes a front; it knows no shard and does not listen yet. */
async function makeFront(given: FrontGiven, { calls, log }: FrontOwn) {
  const { config, connectionsMax } = given
  const standing = new Standing(given.standing)
  const ended = (error: unknown) => log.error({ err: error }, 'the main thread could not be told')
  const shards = new Shards(given.shards, {
    cacheBytesMax: Math.floor(config.recordCacheBytes / config.fronts),
    isOfNode: given.lease !== undefined,
    lose: (shard, reason) => void calls.call('lose', { shard, reason }),
  })
  const parts = makeFrontParts({
    shards,
    readers: remoteReaders(calls),
    bounds: sharedBounds(boundSettings(config, connectionsMax), given.bounds),
    stageFolder: given.stageFolder,
    tickets: (apiKeys) => remoteTickets(calls, apiKeys, ended),
  })
  const gate = new RemoteGate((login) => calls.call('login', login))
  const directory = { masterSeed: Buffer.from(given.masterSeed), tokenEra: given.tokenEra }
  const auth =
    given.auth === undefined
      ? undefined
      : await makeAuth(config, {
          ...parts,
          directory,
          log,
          services: remoteAuthServices(calls, gate, given.auth),
        })
  const readOnly = () => standing.readOnly
  const keys = new ApiKeyUpkeep({ shards, keys: parts.apiKeys, readOnly, nowMs: systemClock })
  shards.follow(frontListener({ ...parts, log, keys, auth }))
  const pages = await readPages(config, createLogger('silent', 'front'))
  const routes = allRoutes(config.agentId, pages.console !== undefined)
  const handling = handlingOf(config, {
    directory: { rootKeyDigest: Buffer.from(given.rootKeyDigest) },
    routes,
    parts,
    standing,
    services: remoteServices(calls, given),
    auth,
    pages,
    log,
  })
  const peers = new Peers({ links: shards.links, log })
  standing.othersReadOnly = () => peers.readOnly
  return { given, log, calls, shards, parts, gate, keys, routes, handling, peers, http: noHttp() }
}

/** What a front has beside what it is given. */
interface FrontOwn {
  /** To the main thread that keeps what all fronts share. */
  calls: ToMain
  log: Logger
}

/** What listens, once it does. */
function noHttp(): { share: HttpShare | undefined } {
  return { share: undefined }
}

/** Answers the calls of the main thread. */
function handlersOf(made: () => Promise<Front>): Handlers<FrontCalls> {
  return {
    join: async (thread) => joinThread(await made(), thread),
    leaving: async (shard) => (await made()).shards.linkOf(shard).leaving(),
    untilCurrent: async () => (await made()).shards.untilCurrent(),
    peers: async (told) => (await made()).peers.follow(told),
    listen: async ({ port }) => listenBeside(await made(), port),
    look: async (attempt) => (await made()).gate.look(attempt),
    verify: async (attempt) => (await made()).gate.verify(attempt),
    async figures() {
      const { given, parts } = await made()
      return figuresOf(given.front, parts)
    },
    lastUses: async (keyIds) => (await made()).parts.apiKeys.lastUses(keyIds),
    async drain({ timeMs }) {
      const { parts, keys, http } = await made()
      await drain(parts, http.share, timeMs)
      await keys.stop()
    },
    async close() {
      const { shards, http, peers } = await made()
      // What the main thread has accepted before it stopped comes first.
      await turn()
      await turn()
      http.share?.close()
      peers.close()
      for (const link of shards.links) link.leave()
      // The connections are closed at the end of this turn of the event loop; with one open, Node ends the process.
      await turn()
      await turn()
      process.exit()
    },
  }
}

/** A turn of the event loop. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

async function listenBeside(front: Front, port: number): Promise<number> {
  const { given, log, parts, routes, handling, keys, http } = front
  const connections = connectionBound(parts.bounds, given.connectionsMax, log)
  const share = await listenAlong({ ...given.config, port, connections }, routes, handling)
  http.share = share
  keys.start()
  return share.door
}

/** Talks to the new thread of a shard of this process. */
async function joinThread(
  { given, shards, calls }: Front,
  { shard, port, memory, term }: FrontCalls['join']['ask'],
): Promise<void> {
  const link = shards.linkOf(shard)
  const thread: ShardConnection = {
    front: given.front,
    term,
    memory: new ShardMemory(memory),
    lease: given.lease && new LeaseMemory(given.lease),
    post: (frame) => port.postMessage(frame, [frame]),
    close: () => port.close(),
  }
  port.on('message', (frame: unknown) => {
    assert(frame instanceof ArrayBuffer, 'a shard sends frames')
    link.receive(thread, frame)
  })
  port.once('close', () => link.end(thread))
  await link.join(thread, (reason) => void calls.call('lose', { shard, reason }))
}
