import type { MessagePort } from 'node:worker_threads'
import { assert } from '../base/assert.js'
import { systemClock } from '../base/clock.js'
import { limits } from '../base/limits.js'
import { createLogger, type Logger } from '../base/log.js'
import type { Readers } from '../dispatch/reader-pool.js'
import { Calls, type Handlers } from '../dispatch/calls.js'
import { ShardLink } from '../dispatch/shard-link.js'
import { Shards } from '../dispatch/shards.js'
import type { FrontListener } from '../dispatch/shard-threads.js'
import { ApiKeyUpkeep } from '../http/auth/api-key-upkeep.js'
import { sharedBounds } from '../http/bounds.js'
import { listenAlong, type HttpShare } from '../http/server.js'
import { Heartbeat } from '../protocol/heartbeat.js'
import type { Notice } from '../protocol/notices.js'
import { LeaseMemory } from '../protocol/lease-memory.js'
import { ShardMemory } from '../protocol/shard-memory.js'
import { allRoutes } from '../routes/routes.js'
import { makeAuth } from './auth.js'
import { figuresOf } from './figures.js'
import type { FrontCalls, FrontGiven, MainCalls } from './front-messages.js'
import {
  remoteAuthServices,
  RemoteGate,
  type ToMain,
  remoteReaders,
  remoteServices,
  remoteTickets,
} from './front-services.js'
import { readPages } from './pages.js'
import { makeFrontParts } from './parts.js'
import { boundSettings, handlingOf } from './requests.js'
import { frontListener } from './shards.js'
import type { Services } from './services.js'
import { Standing } from './state.js'

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

/** A front, as a client of the shards: in a thread of the process that has them, or in another node. */
export type Front = Awaited<ReturnType<typeof makeFront>>

/** Makes a front; it knows no shard and does not listen yet. */
export async function makeFront(given: FrontGiven, { calls, log, ...own }: FrontOwn) {
  const { front, config, connectionsMax } = given
  const standing = new Standing(given.standing)
  const ended = (error: unknown) => log.error({ err: error }, 'the main thread could not be told')
  const links = Array.from({ length: given.shards }, (_none, shard) => newLink(front, shard, calls))
  const readers = remoteReaders(calls)
  const shards = new Shards(
    links.map(({ link }) => link),
    {
      front,
      cacheBytesMax: Math.floor(config.recordCacheBytes / config.fronts),
      lease: given.lease && new LeaseMemory(given.lease),
    },
  )
  const parts = makeFrontParts({
    shards,
    readers: { ...readers, ...own.readers },
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
  const listener = frontListener({ log, streams: parts.streams, keys, auth })
  for (const [shard, one] of links.entries()) one.tellTo({ shard, shards, listener })
  const pages = await readPages(config, createLogger('silent', 'front'))
  const routes = allRoutes(config.agentId, pages.console !== undefined)
  const remote = remoteServices(calls, given)
  const handling = handlingOf(config, {
    directory: { rootKeyDigest: Buffer.from(given.rootKeyDigest) },
    routes,
    parts,
    standing,
    services: { ...remote, ...own.services?.(remote) },
    auth,
    pages,
    log,
  })
  return { given, log, calls, links, parts, gate, keys, listener, routes, handling, standing, http: noHttp() }
}

/** What a front has beside what it is given. */
export interface FrontOwn {
  /** To the main thread that keeps what all fronts share. */
  calls: ToMain
  log: Logger
  /** What it does itself. */
  readers?: Partial<Readers>
  services?(asked: Services): Partial<Services>
}

/** What listens, once it does. */
function noHttp(): { share: HttpShare | undefined } {
  return { share: undefined }
}

/** Answers the calls of the main thread. */
function handlersOf(made: () => Promise<Front>): Handlers<FrontCalls> {
  return {
    join: {
      async handle({ shard, port, memory }) {
        await join(await made(), shard, endOf(port, new ShardMemory(memory)))
      },
    },
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
        const { links, http } = await made()
        http.share?.close()
        for (const { link, leave } of links) {
          link.leave()
          leave()
        }
        // The connections are closed at the end of this turn of the event loop; with one open, Node ends the process.
        setImmediate(() => setImmediate(() => process.exit()))
      },
    },
  }
}

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
export async function drain({ parts, keys, http }: Front, timeMs: number): Promise<void> {
  http.share?.stopListening()
  parts.streams.close()
  parts.uploads.close()
  const untilMs = performance.now() + timeMs
  while (parts.counts.inFlight > 0 && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, limits.drainPollMs))
  }
  await keys.stop()
}

/** The parts that a shard tells. */
interface LinkTold {
  shard: number
  shards: Shards
  listener: FrontListener
}

/** A way to the thread of a shard. */
export interface FrontEnd {
  memory: ShardMemory
  post(frame: ArrayBuffer): void
  /** @param closed called after the last frame of the thread */
  listen(take: (frame: ArrayBuffer) => void, closed: () => void): void
  close(): void
}

function endOf(port: MessagePort, memory: ShardMemory): FrontEnd {
  return {
    memory,
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

/** The front's end of one shard. */
interface FrontLink {
  link: ShardLink
  tellTo(told: LinkTold): void
  /** Talks to a thread of the shard. Resolves when what the last one told is passed on. */
  attach(end: FrontEnd): Promise<void>
  /** Whether the thread that it talks to is there. */
  readonly alive: boolean
  leave(): void
}

function newLink(front: number, shard: number, calls: ToMain): FrontLink {
  let told: LinkTold | undefined
  let end: FrontEnd | undefined
  let ended: Promise<void> = Promise.resolve()
  const link = new ShardLink(front, {
    events: (events) => told?.listener.events(shard, events),
    notice(notice: Notice) {
      const forOthers = told?.shards.take(notice)
      if (forOthers !== undefined) told?.listener.notice(shard, forOthers)
    },
    unreadable: (error) =>
      void calls.call('lose', { shard, reason: `what its thread told cannot be read (${String(error)})` }),
  })
  return {
    link,
    tellTo(parts) {
      told = parts
    },
    async attach(next) {
      await ended
      end = next
      link.begin(next)
      ended = new Promise((resolve) => {
        const closed = () => {
          if (end === next) end = undefined
          link.end(() => {
            told?.shards.ended()
            resolve()
          })
        }
        next.listen((frame) => link.receive(frame), closed)
      })
    },
    get alive() {
      return end !== undefined
    },
    leave: () => end?.close(),
  }
}

/** Talks to the new thread of a shard, once it is known what the last one may not have told. */
export async function join(
  { links, listener, calls, http }: Front,
  shard: number,
  end: FrontEnd,
): Promise<void> {
  const one = links[shard]
  assert(one !== undefined, 'a front has an end of each shard')
  await one.attach(end)
  try {
    await listener.learn(shard, (command) => one.link.learn(command))
  } catch (error) {
    // If it has ended, another one is started, and this begins again.
    if (one.alive) await calls.call('lose', { shard, reason: `what it told is not known (${String(error)})` })
    return
  }
  one.link.serve()
  if (http.share !== undefined) listener.restarted(shard)
}
