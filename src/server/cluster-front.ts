import type { Logger } from '../base/log.js'
import { limits } from '../base/limits.js'
import { steadyClock } from '../base/clock.js'
import type { Member } from '../dispatch/cluster/membership.js'
import { readTold } from '../dispatch/cluster/told.js'
import type { Front } from './front.js'
import { LinkFront, type LinkFrontParts } from './link-front.js'

/** What a node that stands by takes requests with. */
export interface ClusterFrontParts extends LinkFrontParts {
  log: Logger
  /** Requests go to another front from now on; to none when absent. */
  use(front: Front | undefined): void
}

/** Keeps a link to the node that owns the shards, so that a node which stands by takes requests for it. */
export class ClusterFront {
  readonly #parts: ClusterFrontParts
  #owner: Member | undefined
  #link: LinkFront | undefined
  #connecting = false
  #triedAtMs = -Infinity
  #told = ''
  #isOver = false

  constructor(parts: ClusterFrontParts) {
    this.#parts = parts
  }

  /** The owner, as the logs say now; none while nobody who is alive owns the shards. To be called often. */
  follow(owner: Member | undefined): void {
    const isSame = owner?.node === this.#owner?.node && owner?.incarnation === this.#owner?.incarnation
    this.#owner = owner
    if (!isSame) this.#link?.close('another node owns the shards')
    const isTime = steadyClock() - this.#triedAtMs >= limits.linkRetryMs
    if (owner !== undefined && this.#link === undefined && !this.#connecting && isTime)
      void this.#connect(owner)
  }

  /** Ends it: no request is taken any more. */
  close(): void {
    this.#isOver = true
    this.#link?.close('this node goes on without it')
  }

  async #connect(owner: Member): Promise<void> {
    this.#connecting = true
    this.#triedAtMs = steadyClock()
    try {
      const link: LinkFront = await LinkFront.connect(placeOf(owner), this.#parts, {
        serves: (front) => {
          this.#told = ''
          this.#parts.log.info({ owner: owner.node }, 'takes requests for the node that owns the shards')
          if (!this.#isOver) this.#parts.use(front)
        },
        ended: (reason) => {
          this.#link = undefined
          if (!this.#isOver) this.#parts.use(undefined)
          this.#tell(owner, reason)
        },
      })
      this.#link = link
      if (this.#isOver) this.close()
      else if (this.#owner?.node !== owner.node || this.#owner.incarnation !== owner.incarnation)
        link.close('another node owns the shards')
    } catch (error) {
      this.#tell(owner, error instanceof Error ? error.message : String(error))
    } finally {
      this.#connecting = false
    }
  }

  /** The same reason once. */
  #tell(owner: Member, reason: string): void {
    if (this.#isOver || reason === this.#told) return
    this.#told = reason
    this.#parts.log.warn(
      { owner: owner.node, link: readTold(owner).link, reason },
      'no link to the node that owns the shards: it is tried again',
    )
  }
}

/** Where a node takes links, as its row says. @throws Error where it says nothing that this version knows */
function placeOf(member: Member): { host: string; port: number } {
  const { link = '' } = readTold(member)
  const colon = link.lastIndexOf(':')
  const [host, port] = [link.slice(0, colon), Number(link.slice(colon + 1))]
  if (colon < 1 || !Number.isInteger(port))
    throw new Error(`The node ${member.node} does not say where it takes links`)
  return { host, port }
}
