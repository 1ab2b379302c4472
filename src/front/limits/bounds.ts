import { randomBytes } from 'node:crypto'
import { limits } from '../../base/limits/limits.js'
import { sharedTableMemory, type SharedTableMemory } from './shared-table.js'
import { OwnCount, SharedCount, type Count, SharedShares, Shares, type ShareCounts } from './shares.js'
import { SharedBuckets } from './rate-buckets.js'
import { RateLimiter } from './rate-limit.js'
import { BoundedBytes } from './bounded-bytes.js'

/** The settings that bounds come from. */
export interface BoundSettings {
  streamsPerPrincipal: number
  /** For each address, per second; 0 is off. */
  global: { ratePerSec: number; burst: number }
  auth: { ratePerSec: number; burst: number }
  /** Connections at once; Infinity where nothing limits them. */
  connectionsMax: number
}

/** What bounds the whole process, whichever front counts. */
export interface Bounds {
  connections: Count
  streams: StreamBounds
  /** Bytes of answers and exports that wait for their readers. */
  answers: BoundedBytes
  /** Bytes of bodies that are arriving, or wait until they are carried out. */
  bodies: BoundedBytes
  global: RateLimiter
  auth: RateLimiter
}

/** What bounds the streams of all fronts. */
export interface StreamBounds {
  count: Count
  /** How many each principal has. */
  shares: ShareCounts
  /** Bytes of events that wait for their readers. */
  unsent: BoundedBytes
  /** Bytes of what users may read, which their streams hold. */
  grants: BoundedBytes
}

/** The bounds of a process with one front. */
export function ownBounds(settings: BoundSettings): Bounds {
  const rate = (limit: BoundSettings['global']) =>
    new RateLimiter({ ...limit, addressesMax: limits.rateLimitAddressesMax })
  return {
    connections: new OwnCount(),
    streams: ownStreamBounds(settings.streamsPerPrincipal),
    answers: ownUnsent(),
    bodies: ownBodies(),
    global: rate(settings.global),
    auth: rate(settings.auth),
  }
}

/** The bounds of streams of a process with one front. @param perPrincipal how many streams one principal can have open */
export function ownStreamBounds(perPrincipal: number): StreamBounds {
  return {
    count: new OwnCount(),
    shares: new Shares(perPrincipal),
    unsent: ownUnsent(eventBytes),
    grants: ownUnsent(grantBytes),
  }
}

/** Bytes in all and of each principal at most. */
interface ByteBound {
  max: number
  perPrincipalMax: number
}

const answerBytes = { max: limits.unsentBytesMax, perPrincipalMax: limits.unsentBytesPerPrincipalMax }
const eventBytes = { max: limits.unsentBytesMax, perPrincipalMax: limits.streamUnsentBytesPerPrincipalMax }
const grantBytes = {
  max: limits.streamGrantBytesMax,
  perPrincipalMax: limits.streamGrantBytesPerPrincipalMax,
}
const bodyBytes = { max: limits.bodyBytesInMemoryMax, perPrincipalMax: limits.bodyBytesPerPrincipalMax }

/** The bound of answers that wait for their readers, of a process with one front. */
export function ownUnsent(bound: ByteBound = answerBytes): BoundedBytes {
  return new BoundedBytes({
    max: bound.max,
    total: new OwnCount(),
    shares: new Shares(bound.perPrincipalMax),
  })
}

/** The bound of bodies that are in memory, of a process with one front. */
export function ownBodies(): BoundedBytes {
  return ownUnsent(bodyBytes)
}

/** The memory of bounds that several fronts share. */
export interface BoundsMemory {
  /** Connections, streams, and bytes of answers, of events, of bodies and of grants. */
  counts: SharedArrayBuffer
  streams: SharedTableMemory
  answers: SharedTableMemory
  bodies: SharedTableMemory
  events: SharedTableMemory
  grants: SharedTableMemory
  global: SharedTableMemory
  auth: SharedTableMemory
}

/** Principals whose bytes are counted at most: as many as there can be connections by the setting. */
const READERS_MAX = 1_000_000

/** Streams that are being opened or closed while the last ones are counted. */
const OPENING_MAX = 1_024

/** Makes it. */
export function boundsMemory({ connectionsMax }: BoundSettings): BoundsMemory {
  const secret = randomBytes(16).toString('hex')
  // As many principals can have bytes that wait as there are connections.
  const readers = Math.min(connectionsMax, READERS_MAX)
  const table = (keysMax: number) => sharedTableMemory(keysMax, secret)
  return {
    counts: new SharedArrayBuffer(6 * Int32Array.BYTES_PER_ELEMENT),
    streams: table(limits.streamsMax + OPENING_MAX),
    answers: table(readers),
    bodies: table(readers),
    events: table(limits.streamsMax + OPENING_MAX),
    grants: table(limits.streamsMax + OPENING_MAX),
    global: table(limits.rateLimitAddressesMax),
    auth: table(limits.rateLimitAddressesMax),
  }
}

/** The bounds of a process with several fronts. */
export function sharedBounds(settings: BoundSettings, memory: BoundsMemory): Bounds {
  const words = new Int32Array(memory.counts)
  const bytes = (at: number, { max, perPrincipalMax }: ByteBound, table: SharedTableMemory) =>
    new BoundedBytes({
      max,
      total: new SharedCount(words, at),
      shares: new SharedShares(perPrincipalMax, table),
    })
  const rate = (limit: BoundSettings['global'], table: SharedTableMemory) =>
    new RateLimiter({ ...limit, addressesMax: table.keysMax }, (rule) => new SharedBuckets(rule, table))
  return {
    connections: new SharedCount(words, 0),
    streams: {
      count: new SharedCount(words, 1),
      shares: new SharedShares(settings.streamsPerPrincipal, memory.streams),
      unsent: bytes(3, eventBytes, memory.events),
      grants: bytes(5, grantBytes, memory.grants),
    },
    answers: bytes(2, answerBytes, memory.answers),
    bodies: bytes(4, bodyBytes, memory.bodies),
    global: rate(settings.global, memory.global),
    auth: rate(settings.auth, memory.auth),
  }
}
