import { randomBytes } from 'node:crypto'
import { limits } from '../../base/limits/limits.js'
import { allocateTable, type SharedTableMemory } from './shared-table.js'
import {
  LocalCount,
  SharedCount,
  type Count,
  SharedPrincipalQuotas,
  PrincipalQuotas,
  type QuotaCounts,
} from './quotas.js'
import { SharedBuckets } from './rate-buckets.js'
import { RateLimiter } from './rate-limit.js'
import { BoundedBytes } from './bounded-bytes.js'

export interface BoundSettings {
  streamsPerPrincipal: number
  /** For each address, per second; 0 is off. */
  global: { ratePerSec: number; burst: number }
  auth: { ratePerSec: number; burst: number }
  connectionsMax: number
}

/** Limits of the whole process, across all fronts. */
export interface Bounds {
  connections: Count
  streams: StreamBounds
  /** Bytes of answers and exports that clients have not read yet. */
  answers: BoundedBytes
  /** Bytes of request bodies that are arriving or waiting to be processed. */
  bodies: BoundedBytes
  global: RateLimiter
  auth: RateLimiter
}

export interface StreamBounds {
  count: Count
  shares: QuotaCounts
  /** Bytes of events that clients have not read yet. */
  unsent: BoundedBytes
  /** Bytes of the read grants of users that open streams hold. */
  grants: BoundedBytes
}

export function localBounds(settings: BoundSettings): Bounds {
  const rate = (limit: BoundSettings['global']) =>
    new RateLimiter({ ...limit, addressesMax: limits.rateLimitAddressesMax })
  return {
    connections: new LocalCount(),
    streams: localStreamBounds(settings.streamsPerPrincipal),
    answers: localUnreadBytes(),
    bodies: localBodyBytes(),
    global: rate(settings.global),
    auth: rate(settings.auth),
  }
}

/** The stream limits of a process with one front. @param perPrincipal open streams per principal at most */
export function localStreamBounds(perPrincipal: number): StreamBounds {
  return {
    count: new LocalCount(),
    shares: new PrincipalQuotas(perPrincipal),
    unsent: localUnreadBytes(eventBytes),
    grants: localUnreadBytes(grantBytes),
  }
}

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

/** Limits unread bytes in a process with one front. */
export function localUnreadBytes(bound: ByteBound = answerBytes): BoundedBytes {
  return new BoundedBytes({
    max: bound.max,
    total: new LocalCount(),
    shares: new PrincipalQuotas(bound.perPrincipalMax),
  })
}

/** Limits the bytes of request bodies in a process with one front. */
export function localBodyBytes(): BoundedBytes {
  return localUnreadBytes(bodyBytes)
}

/** The memory in which several fronts share their counters. */
export interface BoundsMemory {
  /** Six counters: connections, streams, and bytes of answers, events, bodies and grants. */
  counts: SharedArrayBuffer
  streams: SharedTableMemory
  answers: SharedTableMemory
  bodies: SharedTableMemory
  events: SharedTableMemory
  grants: SharedTableMemory
  global: SharedTableMemory
  auth: SharedTableMemory
}

/** At most as many principals as connections can be configured. */
const PRINCIPALS_MAX = 1_000_000

/** Extra entries for streams that are being opened or closed. */
const OPENING_MAX = 1_024

/** Allocates the shared counters. */
export function allocateBounds({ connectionsMax }: BoundSettings): BoundsMemory {
  const secret = randomBytes(16).toString('hex')
  const principals = Math.min(connectionsMax, PRINCIPALS_MAX)
  const table = (keysMax: number) => allocateTable(keysMax, secret)
  return {
    counts: new SharedArrayBuffer(6 * Int32Array.BYTES_PER_ELEMENT),
    streams: table(limits.streamsMax + OPENING_MAX),
    answers: table(principals),
    bodies: table(principals),
    events: table(limits.streamsMax + OPENING_MAX),
    grants: table(limits.streamsMax + OPENING_MAX),
    global: table(limits.rateLimitAddressesMax),
    auth: table(limits.rateLimitAddressesMax),
  }
}

/** The limits of a process with several fronts. */
export function sharedBounds(settings: BoundSettings, memory: BoundsMemory): Bounds {
  const words = new Int32Array(memory.counts)
  const bytes = (at: number, { max, perPrincipalMax }: ByteBound, table: SharedTableMemory) =>
    new BoundedBytes({
      max,
      total: new SharedCount(words, at),
      shares: new SharedPrincipalQuotas(perPrincipalMax, table),
    })
  const rate = (limit: BoundSettings['global'], table: SharedTableMemory) =>
    new RateLimiter({ ...limit, addressesMax: table.keysMax }, (rule) => new SharedBuckets(rule, table))
  return {
    connections: new SharedCount(words, 0),
    streams: {
      count: new SharedCount(words, 1),
      shares: new SharedPrincipalQuotas(settings.streamsPerPrincipal, memory.streams),
      unsent: bytes(3, eventBytes, memory.events),
      grants: bytes(5, grantBytes, memory.grants),
    },
    answers: bytes(2, answerBytes, memory.answers),
    bodies: bytes(4, bodyBytes, memory.bodies),
    global: rate(settings.global, memory.global),
    auth: rate(settings.auth, memory.auth),
  }
}
