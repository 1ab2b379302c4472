import { Calls } from './calls.mjs'

/**
 * The part of an actor: draws its calls, and knows the expected state.
 * @typedef {object} Part
 * @property {(random: () => number) => import('./calls.mjs').Call} draw the next call
 * @property {(url: string, whole: boolean) => Promise<string[]>} check checks the state after a crash,
 * `whole`: all of it, not only the latest changes; resolves to the faults
 */

/** Makes the calls of a part, one after another, and repeats interrupted calls after a crash. */
export class Actor {
  #calls
  #part
  #random = () => 0

  /**
   * @param {string} name begins the keys of its calls
   * @param {Part} part
   */
  constructor(name, part) {
    this.#calls = new Calls(name)
    this.#part = part
  }

  /** The faults so far. */
  get faults() {
    return this.#calls.faults
  }

  /** Begins a round. @param {() => number} random */
  begin(random) {
    this.#random = random
  }

  /** Makes a call; rejects if the server ends before its answer. @param {string} url */
  act(url) {
    return this.#calls.make(url, this.#part.draw(this.#random))
  }

  /**
   * Checks the state after a crash.
   * @param {string} url
   * @param {{whole: boolean}} about whether everything is checked
   */
  async check(url, { whole }) {
    await this.#calls.resend(url)
    this.faults.push(...(await this.#part.check(url, whole)))
  }
}
