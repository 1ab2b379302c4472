import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startCommand } from './command.mjs'
import { inherited } from './inherited.mjs'
import { send } from './request.mjs'
import { startVictim } from './victim.mjs'

/** The assumed duration of a backup or restore before one was measured, milliseconds. */
const COMMAND_MS = 1_000
/** The share of a command's duration in which it writes, after its start. */
const WORK_PART = 0.5
/** The number of agents for which a restored server writes. */
const WRITTEN_TO = 3

/** Backups and restores of one data directory that are killed, or whose server is killed. */
export class Backups {
  #life
  #random
  #created = 0
  #backupMs = COMMAND_MS
  #restoreMs = COMMAND_MS
  /**
   * The last complete backup, and the heads that it must contain. @type {{path: string, heads:
   * ReadonlyMap<string, import('./strands.mjs').Head>} \| undefined}
   */
  #complete

  /** @param {import('./life.mjs').Life} life */
  constructor(life) {
    this.#life = life
    this.#random = life.random
  }

  /**
   * Kills a backup of a loaded server at a random moment, and then the server.
   * @returns {Promise<string>} what happened
   */
  async killBackup() {
    const { backup, aliveMs } = await this.#beginBackup()
    const { code } = await backup.command.kill()
    const killed = await this.#life.killLoaded()
    if (code !== null && code !== 0) this.#fault(`The backup of a running server ended with ${code}`)
    const found = await this.#judge(backup)
    return `backup killed after ${aliveMs} ms: ${found}; server killed; ${killed}`
  }

  /** Kills a loaded server at a random moment of its backup. @returns {Promise<string>} what happened */
  async killServer() {
    const { backup, aliveMs } = await this.#beginBackup()
    const killed = await this.#life.killLoaded()
    const { code, stderr } = await backup.command.ended
    const { path } = backup
    // If the copy was complete, it is a backup; otherwise, nothing is left.
    if (existsSync(path) !== (code === 0))
      this.#fault(`A backup ended with ${code} and left ${path}:\n${stderr}`)
    const found = await this.#judge(backup)
    return `server killed after ${aliveMs} ms of a backup: ${found}; ${killed}`
  }

  /** Kills a restore at a random moment and repeats it. @returns {Promise<string>} what happened */
  async killRestore() {
    const { path, heads } = this.#complete ?? (await this.#completeBackup())
    const dataDir = join(this.#life.directory, `restored-${this.#created++}`)
    const restore = startCommand(['restore', path], environment(dataDir))
    const aliveMs = await this.#moment(restore, { of: dataDir, usualMs: this.#restoreMs })
    await restore.kill()
    const isIncomplete = !existsSync(join(dataDir, 'format.json'))
    if (isIncomplete) {
      if (existsSync(join(dataDir, 'format.json.restoring')) && this.#random() < 0.5)
        await this.#refusesStart(dataDir)
      await this.#restore(path, dataDir)
    }
    const isServed = !isIncomplete || this.#random() < 0.4
    if (isServed) await this.#checkRestored(dataDir, heads)
    rmSync(dataDir, { recursive: true, force: true })
    return `restore killed after ${aliveMs} ms${isIncomplete ? ' and repeated' : ' after its completion'}${isServed ? ', and served' : ''}`
  }

  /** Starts a backup under load, and waits for a random moment of it. */
  async #beginBackup() {
    const life = this.#life
    await life.start()
    await life.beginLoad()
    const backup = this.#start()
    const aliveMs = await this.#moment(backup.command, { of: backup.path, usualMs: this.#backupMs })
    return { backup, aliveMs }
  }

  /**
   * Waits for a random moment of a command, or of the shorter part in which it writes.
   * @returns {Promise<number>} the elapsed time, milliseconds
   */
  async #moment(command, { of, usualMs }) {
    const beganMs = performance.now()
    const atWork = this.#random() < 0.7
    if (atWork) while (!command.isOver() && !existsSync(of)) await pause(2)
    // Early moments are more frequent, because copying takes only a part of the time of the check.
    const part = atWork ? this.#random() ** 3 * usualMs * WORK_PART : this.#random() * usualMs
    await Promise.race([command.ended, pause(part)])
    return Math.round(performance.now() - beganMs)
  }

  #start() {
    const path = join(this.#life.directory, `backup-${this.#created++}`)
    const command = startCommand(['backup', path], environment(this.#life.dataDir))
    return { path, command, heads: this.#life.heads }
  }

  /** A directory with a manifest is complete and can be restored; one without is not a backup. */
  async #judge({ path, heads }) {
    const dataDir = join(this.#life.directory, `restored-${this.#created++}`)
    if (existsSync(join(path, 'manifest.json'))) {
      await this.#restore(path, dataDir)
      rmSync(dataDir, { recursive: true, force: true })
      this.#replaceComplete({ path, heads })
      return 'complete'
    }
    if (this.#random() < 0.5) await this.#refusesRestore(path, dataDir)
    rmSync(path, { recursive: true, force: true })
    return 'incomplete'
  }

  async #refusesRestore(path, dataDir) {
    const { code, stderr } = await startCommand(['restore', path], environment(dataDir)).ended
    if (code !== 1 || !stderr.includes('it is not a backup') || existsSync(dataDir))
      this.#fault(`A restore of an incomplete backup ended with ${code}:\n${stderr}`)
  }

  async #completeBackup() {
    await this.#life.start()
    const beganMs = performance.now()
    const { command, path, heads } = this.#start()
    const { code, stderr } = await command.ended
    this.#backupMs = performance.now() - beganMs
    if (code !== 0) throw new Error(`A backup ended with ${code}:\n${stderr}`)
    return this.#replaceComplete({ path, heads })
  }

  #replaceComplete(backup) {
    if (this.#complete !== undefined) rmSync(this.#complete.path, { recursive: true, force: true })
    this.#complete = backup
    return backup
  }

  async #restore(path, dataDir) {
    const beganMs = performance.now()
    const { code, stderr } = await startCommand(['restore', path], environment(dataDir)).ended
    this.#restoreMs = performance.now() - beganMs
    if (code !== 0) this.#fault(`A restore ended with ${code}:\n${stderr}`)
  }

  async #refusesStart(dataDir) {
    const victim = startVictim(dataDir)
    try {
      await victim.listening()
      this.#fault(`A server started on a directory with an incomplete restore: ${dataDir}`)
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('was interrupted'))) throw error
    } finally {
      await victim.kill()
    }
  }

  /** A server on a restored directory has everything from before the backup, and accepts writes. */
  async #checkRestored(dataDir, heads) {
    const victim = startVictim(dataDir)
    try {
      const url = (await victim.listening()) ?? ''
      for (const [agent, { seq, hash }] of heads) {
        const path = `/v1/strand/proof?agent=${agent}&hash=${hash}`
        const { status, body } = await send(url, { method: 'GET', path })
        if (status !== 200 || body.seq !== seq)
          this.#fault(`Record ${seq} of ${agent} is not in a later backup`)
      }
      for (const agent of [...heads.keys()].slice(0, WRITTEN_TO)) {
        const body = JSON.stringify({ data: { restored: true } })
        const headers = { 'content-type': 'application/json' }
        const request = { method: 'POST', path: `/v1/agents/${agent}/records`, headers, body }
        const { status } = await send(url, request)
        if (status !== 201) this.#fault(`A write for ${agent} after a restore returned ${status}`)
      }
      const code = await victim.stop()
      if (code !== 0)
        this.#fault(`The server of a restored directory stopped with ${code}:\n${victim.stderr()}`)
    } finally {
      await victim.kill()
    }
  }

  #fault(text) {
    this.#life.faults.push(text)
  }
}

function environment(dataDir) {
  return { ...inherited, SERVICE_DATA_DIR: dataDir }
}
