import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The process that loads servers and records its requests and their answers (load.mjs). */
export class LoadProcess {
  #child = fork(fileURLToPath(new URL('load.mjs', import.meta.url)), { execArgv: [] })
  #died = once(this.#child, 'exit').then(() => {
    throw new Error('The process that loads the servers has ended')
  })

  constructor() {
    // Prevents an unhandled rejection if no call waits for it.
    this.#died.catch(() => undefined)
  }

  /**
   * Starts to load a server. Resolves after the first answer, so that no round is empty.
   * @param {{url: string, seed: number, prefix: string}} round `prefix` begins the ids of its operations
   */
  begin(round) {
    return this.#request({ ...round, acting: true })
  }

  /**
   * After the server was killed: its requests and answers.
   * @returns {Promise<{journal: import('./check.mjs').Entry[], acted: number}>} acted: answered calls of
   * actors
   */
  stop() {
    return this.#request('stop')
  }

  /**
   * Makes the actors check their answers on the restarted server.
   * @param {string} url
   * @param {boolean} whole whether everything is checked, or only changes since the last check
   * @returns {Promise<{faults: string[]}>}
   */
  look(url, whole) {
    return this.#request({ look: url, whole })
  }

  end() {
    this.#child.disconnect()
  }

  async #request(message) {
    const answered = once(this.#child, 'message')
    this.#child.send(message)
    const [answer] = await Promise.race([answered, this.#died])
    return answer
  }
}
