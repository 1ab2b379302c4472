/**
 * A product that is compared with Strandfast. Each file beside this one has one.
 * @typedef {object} Peer
 * @property {string} name
 * @property {import('./workloads.mjs').Workload['kind'][]} kinds of workloads that it takes on
 * @property {() => string | undefined} missing what is not installed and how to have it, where something is
 * @property {(bench: PeersBench, kind: string) => Promise<StartedPeer>} start begins with an empty directory
 */

/**
 * @typedef {object} StartedPeer
 * @property {string} version
 * @property {(workload: import('./workloads.mjs').Workload) => import('./rounds.mjs').Contender[]} contenders
 * @property {() => Promise<void>} stop
 */

/**
 * What a comparison needs.
 * @typedef {object} PeersBench
 * @property {import('./options.mjs').PeersPlan} plan
 * @property {string} directory a temporary one
 * @property {(text: string) => void} tell shows what goes on
 */

import { betterAuth } from './better-auth.mjs'
import { betterSqlite3 } from './better-sqlite3.mjs'
import { ceilings } from './ceilings.mjs'
import { hypercore } from './hypercore.mjs'
import { postgresql } from './postgresql.mjs'
import { redis } from './redis.mjs'
import { strandfast } from './strandfast.mjs'

/** Strandfast is the first: what all others are compared with. @type {Peer[]} */
export const peers = [strandfast, postgresql, redis, betterSqlite3, hypercore, betterAuth, ceilings]
