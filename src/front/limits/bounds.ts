import { randomBytes } from 'node:crypto'
import { refuse } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { Quota } from '../../base/quota.js'
import { allocateTable, SharedHoldings, type SharedTableMemory } from './shared-table.js'
import { RateLimiter, SharedBuckets } from './rate-limits.js'

export interface BoundSettings {
  streamsPerPrincipal: number
  /** For each address, per second; 0 is off. */
  global: { ratePerSec: number; burst: number }
  auth: { ratePerSec: number; burst: number }
  connectionsMax: number
}

/** Limits of the whole process, across all fronts. */
export interface Bounds {
  /** All of one holder. */
  connections: Quota
  streams: StreamBounds
  /** Bytes of answers and exports that clients have not read yet. */
  answers: Quota
  /** Bytes of request bodies that are arriving or waiting to be processed. */
  bodies: Quota
  global: RateLimiter
  auth: RateLimiter
}

export interface StreamBounds {
  /** Streams that are open or being opened. */
  open: Quota
  /** Bytes of events that clients have not read yet. */
  unsent: Quota
  /** Bytes of the read grants of users that open streams hold. */
  grants: Quota
}

export const answerBytes = { max: limits.unsentBytesMax, perHolderMax: limits.unsentBytesPerPrincipalMax }
export const bodyBytes = { max: limits.bodyBytesInMemoryMax, perHolderMax: limits.bodyBytesPerPrincipalMax }
const eventBytes = { max: limits.unsentBytesMax, perHolderMax: limits.streamUnsentBytesPerPrincipalMax }
const grantBytes = { max: limits.streamGrantBytesMax, perHolderMax: limits.streamGrantBytesPerPrincipalMax }

/** 503 while clients have left too many bytes unread. */
export const tooManyUnreadBytes = refuse(
  'overloaded',
  'Too many bytes of answers are waiting to be read: read open answers to their end, then try again',
  { retryAfterSecs: 1 },
)

/** @param memory that of all fronts; undefined in a process with one front */
export function boundsOf(settings: BoundSettings, memory?: BoundsMemory): Bounds {
  const rate = (limit: BoundSettings['global'], table: SharedTableMemory | undefined) =>
    new RateLimiter(
      { ...limit, addressesMax: limits.rateLimitAddressesMax },
      table && ((rule) => new SharedBuckets(rule, table)),
    )
  return {
    connections: quotaOf({ max: settings.connectionsMax }, memory?.connections),
    streams: streamBounds(settings.streamsPerPrincipal, memory),
    answers: quotaOf(answerBytes, memory?.answers),
    bodies: quotaOf(bodyBytes, memory?.bodies),
    global: rate(settings.global, memory?.global),
    auth: rate(settings.auth, memory?.auth),
  }
}

/** The limits of streams. @param perPrincipal open streams per principal at most */
export function streamBounds(perPrincipal: number, memory?: BoundsMemory): StreamBounds {
  return {
    open: quotaOf({ max: limits.streamsMax, perHolderMax: perPrincipal }, memory?.streams),
    unsent: quotaOf(eventBytes, memory?.events),
    grants: quotaOf(grantBytes, memory?.grants),
  }
}

function quotaOf(most: { max: number; perHolderMax?: number }, table: SharedTableMemory | undefined): Quota {
  return new Quota(most, table && new SharedHoldings(table))
}

/** The memory in which several fronts share their counters. */
export type BoundsMemory = ReturnType<typeof allocateBounds>

/** At most as many principals as connections can be configured. */
const PRINCIPALS_MAX = 1_000_000

/** Extra entries for streams that are being opened or closed. */
const OPENING_MAX = 1_024

/** Allocates the shared counters. */
export function allocateBounds({ connectionsMax }: BoundSettings) {
  const secret = randomBytes(16).toString('hex')
  const principals = Math.min(connectionsMax, PRINCIPALS_MAX)
  const table = (keysMax: number) => allocateTable(keysMax, secret)
  return {
    connections: table(1),
    streams: table(limits.streamsMax + OPENING_MAX),
    answers: table(principals),
    bodies: table(principals),
    events: table(limits.streamsMax + OPENING_MAX),
    grants: table(limits.streamsMax + OPENING_MAX),
    global: table(limits.rateLimitAddressesMax),
    auth: table(limits.rateLimitAddressesMax),
  }
}
