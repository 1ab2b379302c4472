import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { verifyExport } from '../../src/strand/verify-export.js'
import { send } from '../../scripts/crash-loop/request.mjs'
import { rootKey, startVictim } from '../../scripts/crash-loop/victim.mjs'
import type { DiskShim } from './disk-shim.js'

/** A kind of call, as the shim has them, and what it fails with. */
export interface FailingCall {
  kind: 'write' | 'short' | 'late' | 'sync' | 'open'
  error: 'EIO' | 'ENOSPC' | 'EMFILE'
}

/** What came of a run in which one call failed. */
export interface FailedRun {
  call: FailingCall
  /** False: the run has fewer calls of that kind. */
  hit: boolean
  faults: string[]
  /** Answers of 5xx that came between. */
  refused: number
  /** What ended the process, where the failure did. */
  crash?: string
}

const errnos = { EIO: 5, ENOSPC: 28, EMFILE: 24 }
const agent = 'failing'
const records = 4
/** Tries of one step, and the pause between two, milliseconds. */
const TRIES_MAX = 400
const PAUSE_MS = 25
/** How long a process that is ending may take, milliseconds. */
const EXIT_MS = 5_000

type Victim = ReturnType<typeof startVictim>
type Answer = Awaited<ReturnType<typeof send>>

/**
 * Starts a server on a new directory, has the Nth call of a kind fail, and sends the same few requests, each until it is
 * answered with success under its Idempotency-Key. Then looks, with the shim away, whether everything is there once.
 */
export async function failCall(shim: DiskShim, call: FailingCall, nth: number): Promise<FailedRun> {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-failing-'))
  const data = join(directory, 'data')
  mkdirSync(data, { mode: 0o700 })
  const settings = {
    SERVICE_SHARDS: '1',
    SHIM_FAIL: call.kind,
    SHIM_FAIL_AT: String(nth),
    SHIM_ERRNO: String(errnos[call.error]),
    SHIM_HIT: join(directory, 'hit'),
  }
  const hit = () => existsSync(settings.SHIM_HIT)
  const run: FailedRun = { call, hit: false, faults: [], refused: 0 }
  try {
    await underFailure(startVictim(data, shim.under(data, settings)), { hit, run })
    run.hit = hit()
    const after = startVictim(data, { SERVICE_SHARDS: '1' })
    try {
      const url = (await after.listening()) ?? ''
      const load = new Load(url, run)
      await load.send()
      await load.check()
      const code = await after.stop()
      if (code !== 0) run.faults.push(`The server after it stopped with ${code}: ${after.stderr()}`)
    } finally {
      await after.kill()
    }
  } catch (error) {
    run.faults.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  return run
}

async function underFailure(
  victim: Victim,
  { hit, run }: { hit: () => boolean; run: FailedRun },
): Promise<void> {
  try {
    let url: string | undefined
    try {
      url = await victim.listening()
    } catch (error) {
      // A start may fail where a call did, but not without a word.
      if (!hit() || victim.stderr() === '' || typeof victim.ended() !== 'number') throw error
      return
    }
    const load = new Load(url ?? '', run)
    await load.send()
    await load.check()
    const wasHit = hit()
    const code = await victim.stop()
    if (code !== 0 && (wasHit || !hit()))
      run.faults.push(`The server stopped with ${code}: ${victim.stderr()}`)
  } catch (error) {
    // A broken connection may be told of before the end of the process.
    await Promise.race([victim.exited, pause(EXIT_MS, undefined, { ref: false })])
    const crash = victim.ended()
    await victim.kill()
    if (!hit() || !isKnownCrash(run.call, crash))
      throw new Error(`The server ended with ${crash}: ${victim.stderr()}`, { cause: error })
    run.crash = String(crash)
  } finally {
    await victim.kill()
  }
}

/**
 * Two ways in which lmdb-js 3.5.6 takes the process along, which then is started again by whoever watches over it: where
 * LMDB cannot open a store, and where a write to one fails, which it reports by a text longer than the memory for it.
 */
function isKnownCrash({ kind }: FailingCall, ended: number | string | null): boolean {
  if (ended === 'SIGSEGV') return kind !== 'sync'
  return ended === 'SIGABRT' && (kind === 'write' || kind === 'late')
}

/** The same few requests each time. They can be sent again: what they lead to is there once. */
class Load {
  readonly #url: string
  readonly #run: FailedRun
  readonly #hashes: string[] = []

  constructor(url: string, run: FailedRun) {
    this.#url = url
    this.#run = run
  }

  async send(): Promise<void> {
    await this.#surely('POST', '/v1/agents', { key: 'agent', body: { name: agent, zone: 'free' } })
    for (let n = 0; n < records; n++) {
      const { body } = await this.#surely('POST', `/v1/agents/${agent}/records`, {
        key: `n${n}`,
        body: { data: { n } },
      })
      this.#hashes.push(body.content_hash)
      // Read by the shard, then by the thread for long reads, which has the store open for itself.
      await this.#expectRecord(n, false)
      if (n === 0) await this.#exported()
    }
    await this.#surely('DELETE', `/v1/agents/${agent}/records/${this.#hashes[1]}`, { key: 'delete' })
    await this.#surely('POST', `/v1/agents/${agent}/records/${this.#hashes[2]}/erase`, { key: 'erase' })
  }

  async check(): Promise<void> {
    for (const n of this.#hashes.keys()) await this.#expectRecord(n, n === 1)
    const lines = await this.#exported()
    const verified = await verifyExport(lines)
    if (!verified.ok) this.#fault(`The strand does not verify: ${JSON.stringify(verified)}`)
    const numbers = lines.flatMap((line) => {
      const { h, body }: { h?: string; body?: string } = JSON.parse(line)
      return h?.includes('\ntype record\n') === true ? [body] : []
    })
    const expected = Array.from({ length: records }, (_none, n) => (n === 2 ? undefined : `{"n":${n}}`))
    if (numbers.join() !== expected.join()) this.#fault(`The strand holds ${numbers.join()}`)
  }

  async #expectRecord(n: number, deleted: boolean): Promise<void> {
    const { body } = await this.#surely('GET', `/v1/agents/${agent}/records/${this.#hashes[n]}`, {})
    // Sent again, a request finds what later ones did the time before.
    const payload = body.erased === true ? null : { n }
    const right =
      body.record_id === this.#hashes[n] && JSON.stringify(body.payload) === JSON.stringify(payload)
    if (!right || (deleted && body.deleted !== true) || (n !== 1 && body.deleted === true))
      this.#fault(`Record ${n} is shown as ${JSON.stringify(body)}`)
  }

  async #exported(): Promise<string[]> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      try {
        const response = await fetch(`${this.#url}/v1/strand/export?agent=${agent}`, {
          headers: { authorization: `Bearer ${rootKey}` },
        })
        const text = await response.text()
        if (response.status === 200) return text.trimEnd().split('\n')
        this.#refused('GET export', response.status, text)
      } catch (error) {
        // An export that cannot go on is broken off.
        if (!(error instanceof TypeError)) throw error
        this.#run.refused++
      }
      await pause(PAUSE_MS)
    }
    throw new Error('The export was never whole again')
  }

  /** Sends a request until it succeeds. @throws Error when the server is gone, or never comes back */
  async #surely(
    method: string,
    path: string,
    { key, body }: { key?: string; body?: object },
  ): Promise<Answer> {
    const headers = {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': key }),
    }
    let last: Answer | undefined
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      last = await send(this.#url, {
        method,
        path,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      if (last.status < 300) return last
      this.#refused(`${method} ${path}`, last.status, JSON.stringify(last.body))
      await pause(PAUSE_MS)
    }
    throw new Error(`${method} ${path} was never carried out: ${JSON.stringify(last)}`)
  }

  #refused(what: string, status: number, answer: string): void {
    if (status < 500) this.#fault(`${what} was answered ${status} ${answer}`)
    this.#run.refused++
  }

  #fault(text: string): void {
    this.#run.faults.push(text)
  }
}
