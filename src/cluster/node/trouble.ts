import type { Logger } from '../../base/log.js'
import { describeTrouble } from '../database/trouble.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'

/** Beats without a failure after which one is an outage of its own. */
const QUIET_TICKS = 2

/** What a node logs of its way to the database of its cluster: each outage once, however often a beat is tried. */
export class ClusterTrouble {
  readonly #lease: LeaseMemory
  readonly #log: Logger
  #isCutOff = false
  /** Ticks until a beat that fails is told of again. */
  #quietTicks = 0
  #toldReason = ''

  constructor(lease: LeaseMemory, log: Logger) {
    this.#lease = lease
    this.#log = log
  }

  /** A beat failed. */
  tell(error: unknown): void {
    const reason = describeTrouble(error)
    const isTold = this.#quietTicks > 0 && reason === this.#toldReason
    this.#quietTicks = QUIET_TICKS
    if (isTold || !this.#lease.holds()) return
    this.#toldReason = reason
    this.#log.warn({ reason }, 'a beat did not reach the database of the cluster: it is tried again')
  }

  /** To be called once for each beat: tells when the lease has ended, and when there is one again. */
  step(): void {
    this.#quietTicks -= 1
    const isCutOff = !this.#lease.holds()
    if (isCutOff === this.#isCutOff) return
    this.#isCutOff = isCutOff
    if (isCutOff)
      this.#log.error('the database of the cluster cannot be reached: answering nothing until it can')
    else this.#log.warn('the database of the cluster can be reached again')
  }
}
