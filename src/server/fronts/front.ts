import type { MessagePort } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import { systemClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import { createLogger, type Logger } from '../../base/log.js'
import { Peers } from '../../cluster/links/peers.js'
import { Calls, type Handlers } from '../../dispatch/calls.js'
import type { ShardConnection } from '../../dispatch/links/shard-connection.js'
import { Shards } from '../../dispatch/links/shards.js'
import { ApiKeySync } from '../../front/http/auth/api-key-sync.js'
import { listenShared, type HttpShare } from '../../front/http/server.js'
import { boundsOf } from '../../front/limits/bounds.js'
import { allRoutes } from '../../front/routes/routes.js'
import { ConfirmedClock } from '../../protocol/confirmed-clock.js'
import { Heartbeat } from '../../protocol/heartbeat.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import { memoryOf } from '../../otlp/tasks.js'
import { ShardMemory } from '../../protocol/shard-memory.js'
import { makeAuth } from '../auth.js'
import type { FrontCalls, FrontWorkerData, MainCalls } from '../calls/front-messages.js'
import {
  remoteAuthServices,
  remoteReaders,
  remoteServices,
  remoteTickets,
  type MainClient,
} from '../calls/front-services.js'
import { readPages } from '../pages.js'
import { boundSettings, connectionBound, drain, makeFrontParts } from '../parts.js'
import { handlingOf } from '../requests.js'
import { figuresOf } from '../services.js'
import { frontListener } from '../shards.js'
import { ServerStatus } from '../state.js'

/** Runs a front in its own thread: accepts requests, and is a client of the shards like the main thread. */
export function runFront(given: FrontWorkerData, port: MessagePort): void {
  const log = createLogger(given.config.logLevel, `front-${given.front}`)
  const calls: Calls<FrontCalls, MainCalls> = new Calls(
    (message, transfer) => port.postMessage(message, transfer),
    handlersOf(() => front),
  )
  const front = makeFront(given, { calls, log })
  // The thread continues until the main thread closes it: if it ended by itself, the process could end
  // immediately.
  process.on('uncaughtException', (error: unknown) => {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
    void calls.call('failed', stack)
  })
  const heartbeat = new Heartbeat(given.heartbeat)
  setInterval(() => heartbeat.step(), limits.frontHeartbeatMs).unref()
  // Messages that arrive before the front is ready wait for it.
  void front.then(() => port.on('message', (message: unknown) => calls.receive(message)))
}

/** A front as a client of the shards. */
type Front = Awaited<ReturnType<typeof makeFront>>

/** Creates a front that has joined no shard and does not listen yet. */
async function makeFront(given: FrontWorkerData, { calls, log }: FrontOwn) {
  const { config, connectionsMax } = given
  const status = new ServerStatus(given.status)
  const failed = (error: unknown) => log.error({ err: error }, 'a call to the main thread failed')
  const shards = new Shards(given.shards, {
    cacheBytesMax: Math.floor(config.recordCacheBytes / config.fronts),
    isOfNode: given.lease !== undefined,
  })
  const clock = given.clock === undefined ? systemClock : new ConfirmedClock(given.clock).now
  const parts = makeFrontParts({
    clock,
    shards,
    readers: remoteReaders(calls),
    decoder: { decode: (call) => calls.call('otlpDecode', call, memoryOf(call.task)) },
    bounds: boundsOf(boundSettings(config, connectionsMax), given.bounds),
    stageFolder: given.stageFolder,
    tickets: (apiKeys) => remoteTickets(calls, apiKeys, failed),
  })
  const directory = { masterSeed: Buffer.from(given.masterSeed), tokenEra: given.tokenEra }
  const auth =
    given.auth === undefined
      ? undefined
      : await makeAuth(config, {
          ...parts,
          directory,
          log,
          services: remoteAuthServices(calls, given.auth),
        })
  const readOnly = () => status.readOnly
  shards.isReadOnly = readOnly
  const keys = new ApiKeySync({ shards, keys: parts.apiKeys, readOnly, nowMs: clock })
  shards.follow(frontListener({ ...parts, log, keys, auth }))
  const pages = await readPages(config, createLogger('silent', 'front'))
  const routes = allRoutes(config.agentId, pages.console !== undefined)
  const handling = handlingOf(config, {
    directory: { rootKeyDigest: Buffer.from(given.rootKeyDigest) },
    routes,
    parts,
    status,
    services: remoteServices(calls, given),
    auth,
    pages,
    log,
  })
  const peers = new Peers({ links: shards.links, log })
  return { given, log, calls, shards, parts, keys, routes, handling, peers, http: noHttp() }
}

/** Dependencies of a front beside its worker data. */
interface FrontOwn {
  calls: MainClient
  log: Logger
}

/** The listener, once there is one. */
function noHttp(): { share: HttpShare | undefined } {
  return { share: undefined }
}

/** Handlers for the calls of the main thread. */
function handlersOf(ready: () => Promise<Front>): Handlers<FrontCalls> {
  return {
    join: async (thread) => joinThread(await ready(), thread),
    leaving: async (shard) => (await ready()).shards.linkOf(shard).leaving(),
    untilCurrent: async () => (await ready()).shards.untilCurrent(),
    peers: async (notices) => (await ready()).peers.follow(notices),
    listen: async ({ port }) => listenBeside(await ready(), port),
    async figures() {
      const { given, parts } = await ready()
      return figuresOf(given.front, parts)
    },
    lastUses: async (keyIds) => (await ready()).parts.apiKeys.lastUses(keyIds),
    async drain({ timeMs }) {
      const { parts, keys, http } = await ready()
      await drain(parts, http.share, timeMs)
      await keys.stop()
    },
    async close() {
      const { shards, http, peers } = await ready()
      // Connections that the main thread has accepted before it stopped are handled first.
      await turn()
      await turn()
      http.share?.close()
      peers.close()
      for (const link of shards.links) link.leave()
      // Connections are closed at the end of this turn of the event loop; with an open one, Node ends the
      // process.
      await turn()
      await turn()
      process.exit()
    },
  }
}

/** Resolves after one turn of the event loop. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

async function listenBeside(front: Front, port: number): Promise<number> {
  const { given, log, parts, routes, handling, keys, http } = front
  const connections = connectionBound(parts.bounds, given.connectionsMax, log)
  const share = await listenShared({ ...given.config, port, connections }, routes, handling)
  http.share = share
  keys.start()
  return share.listenerId
}

/** Joins the new thread of a shard in this process. */
async function joinThread(
  { given, shards, calls }: Front,
  { shard, port, memory, term }: FrontCalls['join']['request'],
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
