/**
 * A product that is compared with Strandfast. Each is in a file of this directory.
 * @typedef {object} Peer
 * @property {string} name
 * @property {import('./workloads.mjs').Workload['kind'][]} kinds of workloads that it supports
 * @property {() => string | undefined} missing what is not installed and how to install it; undefined when
 * all is installed
 * @property {(bench: PeersBench, kind: string) => Promise<StartedPeer>} start starts it without data
 */

/**
 * @typedef {object} StartedPeer
 * @property {string} version
 * @property {(workload: import('./workloads.mjs').Workload) => import('./rounds.mjs').Contender[]} contenders
 * @property {() => Promise<void>} stop
 */

/**
 * The context of a comparison.
 * @typedef {object} PeersBench
 * @property {import('./options.mjs').PeersPlan} plan
 * @property {string} directory a temporary one
 * @property {(text: string) => void} report shows progress
 */

import { betterAuth } from './better-auth.mjs'
import { betterSqlite3 } from './better-sqlite3.mjs'
import { ceilings } from './ceilings.mjs'
import { handBuilt } from './hand-built.mjs'
import { hypercore } from './hypercore.mjs'
import { postgresql } from './postgresql.mjs'
import { redis } from './redis.mjs'
import { strandfast } from './strandfast.mjs'

/** The others are compared with Strandfast, which comes first. @type {Peer[]} */
export const peers = [
  strandfast,
  handBuilt,
  postgresql,
  redis,
  betterSqlite3,
  hypercore,
  betterAuth,
  ceilings,
]
