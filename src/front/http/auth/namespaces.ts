import type { Namespace } from '../../../auth/namespace.js'
import { boundedCache } from '../../../base/bounded-cache.js'
import type { Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import { unexpected } from '../../routes/answers.js'

/**
 * Which organisms have an auth namespace. A namespace that exists stays, so its shard is asked once; for one that does
 * not exist the shard is asked each time, before anything that costs more.
 */
export class Namespaces {
  readonly #shards: Pick<Shards, 'ask'>
  readonly #known = boundedCache<string, true>(limits.namespacesKnownMax)

  constructor(shards: Pick<Shards, 'ask'>) {
    this.#shards = shards
  }

  /**
   * Why the namespace cannot be used: 404 organism_not_found or namespace_not_found, 503 when its shard cannot answer.
   * @returns at once for one that is known
   */
  missing(namespace: Namespace): undefined | Promise<Refusal | undefined> {
    const { id } = namespace
    return id === '' || this.#known.get(id) === true ? undefined : this.#ask(namespace)
  }

  async #ask({ id, agent }: Namespace): Promise<Refusal | undefined> {
    const lookup = { kind: 'keyEpochs' } as const
    const outcome = await this.#shards.ask(agent, { kind: 'authLookup', agent, namespace: id, lookup })
    if (outcome.kind !== 'auth') return unexpected(outcome)
    this.#known.set(id, true)
    return undefined
  }
}
