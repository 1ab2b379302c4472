import type { MessagePort } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import { systemClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import { createLogger, type Logger } from '../../base/log.js'
import { Calls, type Handlers } from '../../dispatch/calls.js'
import { FrontLink, join, type FrontEnd } from '../../dispatch/links/front-link.js'
import { Shards } from '../../dispatch/links/shards.js'
import type { FrontListener } from '../../dispatch/threads/shard-threads.js'
import { ApiKeyUpkeep } from '../../front/http/auth/api-key-upkeep.js'
import { sharedBounds } from '../../front/limits/bounds.js'
import { listenAlong, type HttpShare } from '../../front/http/server.js'
import { Heartbeat } from '../../protocol/heartbeat.js'
import type { StreamEvent } from '../../protocol/messages.js'
import type { Notice } from '../../protocol/notices.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import { ShardMemory } from '../../protocol/shard-memory.js'
import { allRoutes } from '../../front/routes/routes.js'
import { makeAuth } from '../auth.js'
import { figuresOf } from '../figures.js'
import type { FrontCalls, FrontGiven, MainCalls } from '../calls/front-messages.js'
import {
  remoteAuthServices,
  RemoteGate,
  type ToMain,
  remoteReaders,
  remoteServices,
  remoteTickets,
} from '../calls/front-services.js'
import { readPages } from '../pages.js'
import { Peers } from '../../cluster/links/peers.js'
import { makeFrontParts } from '../parts.js'
import { boundSettings, handlingOf } from '../requests.js'
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
  const isOfNode = given.lease !== undefined
  const told: { by: FrontListener | undefined } = { by: undefined }
  const links = Array.from({ length: given.shards }, (_none, shard) => linkOf(shard, isOfNode))
  function linkOf(shard: number, waits: boolean): FrontLink {
    const listener = {
      events: (events: StreamEvent[]) => told.by?.events(shard, events),
      notice(notice: Notice) {
        const forOthers = shards.take(notice)
        if (forOthers !== undefined) told.by?.notice(shard, forOthers)
      },
      unreadable: (error: unknown) =>
        void calls.call('lose', { shard, reason: `what its thread told cannot be read (${String(error)})` }),
      ended: () => shards.ended(),
    }
    return new FrontLink(listener, waits)
  }
  const cacheBytesMax = Math.floor(config.recordCacheBytes / config.fronts)
  const shards = new Shards(links, { cacheBytesMax, isOfNode })
  const parts = makeFrontParts({
    shards,
    readers: remoteReaders(calls),
    bounds: sharedBounds(boundSettings(config, connectionsMax), given.bounds),
    stageFolder: given.stageFolder,
    tickets: (apiKeys) => remoteTickets(calls, apiKeys, ended),
  })
  const gate = new RemoteGate(calls)
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
  const listener = frontListener({ ...parts, log, keys, auth })
  told.by = listener
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
  const peers = new Peers({ links, listener, log })
  standing.othersReadOnly = () => peers.readOnly
  const more = { listener, routes, handling, standing, peers, http: noHttp() }
  return { given, log, calls, links, parts, gate, keys, ...more }
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
    join: {
      async handle({ shard, port, memory, term }) {
        const front = await made()
        const { front: number, lease } = front.given
        const about = { front: number, memory: new ShardMemory(memory), term }
        await joinOwn(front, shard, endOf(port, { ...about, lease: lease && new LeaseMemory(lease) }))
      },
    },
    leaving: { handle: async (shard) => (await made()).links[shard]?.leaving() },
    untilCurrent: { handle: async () => (await made()).parts.shards.untilCurrent() },
    peers: { handle: async (told) => (await made()).peers.follow(told) },
    listen: { handle: async ({ port }) => listenBeside(await made(), port) },
    look: { handle: async (attempt) => (await made()).gate.look(attempt) },
    verify: { handle: async (attempt) => (await made()).gate.verify(attempt) },
    figures: {
      async handle() {
        const { given, parts } = await made()
        return figuresOf(given.front, parts)
      },
    },
    lastUses: { handle: async (keyIds) => (await made()).parts.apiKeys.lastUses(keyIds) },
    drain: { handle: async ({ timeMs }) => drain(await made(), timeMs) },
    close: {
      async handle() {
        const { links, http, peers } = await made()
        // What the main thread has accepted before it stopped comes first.
        await turn()
        await turn()
        http.share?.close()
        peers.close()
        for (const link of links) link.leave()
        // The connections are closed at the end of this turn of the event loop; with one open, Node ends the process.
        await turn()
        await turn()
        process.exit()
      },
    },
  }
}

/** A turn of the event loop. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

async function listenBeside(front: Front, port: number): Promise<number> {
  const { given, log, parts, routes, handling, keys, http } = front
  const max = given.connectionsMax
  const onFull = () => log.warn({ max }, 'too many connections: further ones were closed')
  const connections = { max, open: parts.bounds.connections, onFull }
  const share = await listenAlong({ ...given.config, port, connections }, routes, handling)
  http.share = share
  keys.keepUp()
  return share.door
}

/** Ends the streams and uploads, and waits until the last answer was sent or the time is over. */
async function drain({ parts, keys, http }: Front, timeMs: number): Promise<void> {
  http.share?.stopListening()
  parts.streams.close()
  parts.uploads.close()
  const untilMs = performance.now() + timeMs
  while (parts.counts.inFlight > 0 && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, limits.drainPollMs))
  }
  await keys.stop()
}

function endOf(port: MessagePort, about: Pick<FrontEnd, 'front' | 'memory' | 'term' | 'lease'>): FrontEnd {
  return {
    ...about,
    isLeaving: false,
    post: (frame) => port.postMessage(frame, [frame]),
    listen(take, closed) {
      port.on('message', (frame: unknown) => {
        assert(frame instanceof ArrayBuffer, 'a shard sends frames')
        take(frame)
      })
      port.once('close', closed)
    },
    close: () => port.close(),
  }
}

/** Talks to the new thread of a shard of this process. */
async function joinOwn({ links, listener, calls, http }: Front, shard: number, end: FrontEnd): Promise<void> {
  const link = links[shard]
  assert(link !== undefined, 'a front has an end of each shard')
  const serves = await join(link, end, {
    learn: (ask) => listener.learn(shard, ask),
    failed: (reason) => void calls.call('lose', { shard, reason }),
  })
  if (serves && http.share !== undefined) listener.restarted(shard)
}
