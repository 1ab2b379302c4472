import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The process that loads servers and remembers what it sent and was answered (load.mjs). */
export class LoadProcess {
  #child = fork(fileURLToPath(new URL('load.mjs', import.meta.url)), { execArgv: [] })
  #died = once(this.#child, 'exit').then(() => {
    throw new Error('The process that loads the servers has ended')
  })

  constructor() {
    // Somebody may be waiting for it later, or nobody.
    this.#died.catch(() => undefined)
  }

  /**
   * Begins to load a server. Resolves when the first call was answered, so that no round is an empty one.
   * @param {{url: string, seed: number, prefix: string}} round `prefix` begins the ids of its operations
   */
  begin(round) {
    return this.#ask({ ...round, acting: true })
  }

  /**
   * Once the server is dead: what it was asked and what it answered.
   * @returns {Promise<{journal: import('./check.mjs').Entry[], acted: number}>} acted: calls of actors that were answered
   */
  stop() {
    return this.#ask('stop')
  }

  /**
   * Has the actors look at what they were answered, by a server that was started again.
   * @param {string} url
   * @param {boolean} whole whether at everything, or at what was touched since the last time
   * @returns {Promise<{faults: string[]}>}
   */
  look(url, whole) {
    return this.#ask({ look: url, whole })
  }

  end() {
    this.#child.disconnect()
  }

  async #ask(message) {
    const answered = once(this.#child, 'message')
    this.#child.send(message)
    const [answer] = await Promise.race([answered, this.#died])
    return answer
  }
}
