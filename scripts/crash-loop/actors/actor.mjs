import { Calls } from './calls.mjs'

/**
 * What one actor is about: it draws its calls, and knows what has to be found.
 * @typedef {object} Part
 * @property {(random: () => number) => import('./calls.mjs').Call} draw the next call
 * @property {(url: string, whole: boolean) => Promise<string[]>} check looks at what a crash has left, `whole`: at all of
 *   it, not only at what was touched last; resolves to what is wrong
 */

/** Somebody who makes the calls of one part, one after the other, and after a crash sends again what was cut off. */
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

  /** What is wrong. */
  get faults() {
    return this.#calls.faults
  }

  /** Begins a round. @param {() => number} random */
  begin(random) {
    this.#random = random
  }

  /** Makes one call; rejects when the server goes before it is answered. @param {string} url */
  act(url) {
    return this.#calls.make(url, this.#part.draw(this.#random))
  }

  /**
   * Looks at what a crash has left.
   * @param {string} url
   * @param {{whole: boolean}} about whether at everything
   */
  async check(url, { whole }) {
    await this.#calls.resend(url)
    this.faults.push(...(await this.#part.check(url, whole)))
  }
}
