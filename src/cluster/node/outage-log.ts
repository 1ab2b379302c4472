import type { Logger } from '../../base/log.js'
import { describeDatabaseError, failureOf, UnfitServer } from '../database/database-errors.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'

/** Successful heartbeats after which a failure counts as a new outage. */
const QUIET_HEARTBEATS = 2

/**
 * Logs the connectivity to the cluster's database: each outage once, however often a heartbeat is retried.
 */
export class OutageLog {
  readonly #lease: LeaseMemory
  readonly #log: Logger
  #isCutOff = false
  /** Heartbeats until a failure is logged again. */
  #quietHeartbeats = 0
  #lastLogged = ''

  constructor(lease: LeaseMemory, log: Logger) {
    this.#lease = lease
    this.#log = log
  }

  heartbeatFailed(error: unknown): void {
    const reason = describeDatabaseError(error)
    const isLogged = this.#quietHeartbeats > 0 && reason === this.#lastLogged
    this.#quietHeartbeats = QUIET_HEARTBEATS
    const isRefused = failureOf(error) === 'refused' || error instanceof UnfitServer
    if (isLogged || (!isRefused && !this.#lease.holds())) return
    this.#lastLogged = reason
    // Repeating it does not help, and other nodes take over: the reason must be found without a lease too.
    if (isRefused)
      return this.#log.error({ reason }, 'the database of the cluster refuses the heartbeats of this node')
    this.#log.warn({ reason }, 'a heartbeat did not reach the database of the cluster: retrying')
  }

  /**
   * Call it once for each heartbeat, except while the node refuses to serve, which ends its lease: logs when
   * the lease has expired, and when it is held again.
   */
  step(): void {
    this.#quietHeartbeats -= 1
    const isCutOff = !this.#lease.holds()
    if (isCutOff === this.#isCutOff) return
    this.#isCutOff = isCutOff
    if (isCutOff)
      this.#log.error(
        'the database of the cluster confirms no heartbeats: answering nothing from the shards of this node until it does',
      )
    else this.#log.warn('the database of the cluster confirms heartbeats again')
  }
}
