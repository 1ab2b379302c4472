import { rmSync } from 'node:fs'
import { Backups } from './backups.mjs'

/** The kinds of rounds. Each one kills a process and leaves the directory to be checked. */
export class RoundKinds {
  #life
  #random
  #backups

  /** @param {import('./life.mjs').Life} life */
  constructor(life) {
    this.#life = life
    this.#random = life.random
    this.#backups = new Backups(life)
  }

  /** Runs a random kind. @returns {Promise<string>} what happened */
  any() {
    const dice = this.#random()
    if (dice < 0.68) return this.underLoad()
    if (dice < 0.78) return this.starts()
    if (dice < 0.86) return this.#backups.killBackup()
    if (dice < 0.94) return this.#backups.killServer()
    return this.#backups.killRestore()
  }

  /** Kills a first start, on an empty directory or on the result of an earlier one. */
  async firstStart() {
    const life = this.#life
    await life.kill()
    const isEmpty = this.#random() < 0.5
    if (isEmpty) rmSync(life.dataDir, { recursive: true, force: true })
    return `${isEmpty ? 'on an empty directory' : 'on an earlier start'}, ${await life.killStart()}`
  }

  /**
   * Kills a server under load.
   * @param {(dataDir: string, random: () => number) => Promise<string>} [afterKill]
   */
  async underLoad(afterKill) {
    const life = this.#life
    await life.start()
    const killed = await life.killUnderLoad()
    const after = await afterKill?.(life.dataDir, this.#random)
    return after === undefined ? killed : `${killed}; ${after}`
  }

  /** Kills a server under load, and then the next start, once or twice. */
  async starts() {
    const done = [await this.underLoad(), await this.#life.killStart()]
    if (this.#random() < 0.5) done.push(await this.#life.killStart())
    return done.join('; ')
  }
}
