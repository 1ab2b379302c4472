import { backoffMs } from '../base/backoff.js'
import { asBuffer } from '../base/bytes.js'
import type { Clock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import type { RandomBytes } from '../base/random.js'
import type { OutboxMessage } from '../auth/outbox-message.js'
import type { MailResult, MailServer } from './mail.js'
import { writeMail } from './mail-templates.js'

/** The durable outbox. Its mails survive a restart of the server. */
export interface MailOutbox {
  /** Mails that are due, oldest first. They stay in the outbox. */
  take(limit: number): Promise<OutboxMessage[]>
  /** Removes a sent mail. */
  done(id: string): Promise<void>
  /**
   * Records a failed attempt; `attempts` is their number.
   * @param retryAtMs time of the next attempt, Unix milliseconds; if undefined, the mail is dropped
   */
  failed(id: string, retryAtMs: number | undefined, attempts: number): Promise<void>
}

/** Calls `run` once after `afterMs`. @returns a function that cancels the call */
export type Timer = (afterMs: number, run: () => void) => () => void

export interface MailSenderParts {
  outbox: MailOutbox
  server: MailServer
  linkBaseUrl: string
  clock: Clock
  random: RandomBytes
  log: Logger
  timer?: Timer
}

/** A timer that does not keep the process alive. */
const systemTimer: Timer = (afterMs, run) => {
  const timeout = setTimeout(run, afterMs).unref()
  return () => clearTimeout(timeout)
}

/**
 * Sends the mails of the outbox one at a time (docs/SIGN-IN.md). A mail can be sent twice, for example if the
 * connection breaks before the reply of the server; both then have the same Message-ID.
 */
export class MailSender {
  readonly #parts: Required<MailSenderParts>
  readonly #cutOff = new AbortController()
  #running = false
  #run: Promise<void> = Promise.resolve()
  /** Whether the outbox must be read again. */
  #again = false
  #cancelTimer = () => {}
  /** Consecutive pauses since the server last worked, and the end of the last one, Unix milliseconds. */
  #pauses = 0
  #pausedUntilMs = 0
  #stopped = false

  constructor(parts: MailSenderParts) {
    this.#parts = { timer: systemTimer, ...parts }
  }

  /**
   * Must be called if there may be new mails in the outbox: at the start, and after each answer that added
   * one.
   */
  wake(): void {
    if (this.#stopped || this.#paused) return
    this.#again = true
    if (this.#running) return
    this.#running = true
    this.#run = this.#sendAll()
  }

  /** Waits up to `mailStopMs` for the current mail, then aborts it; the mail stays in the outbox. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelTimer()
    const cancel = this.#parts.timer(limits.mailStopMs, () => this.#cutOff.abort())
    await this.#run
    cancel()
  }

  get #paused(): boolean {
    return this.#pauseLeftMs > 0
  }

  /** At most the longest pause, even if the clock was turned back. */
  get #pauseLeftMs(): number {
    const leftMs = this.#pausedUntilMs - this.#parts.clock()
    return leftMs > limits.mailRetryMaxMs ? 0 : Math.max(0, leftMs)
  }

  async #sendAll(): Promise<void> {
    this.#cancelTimer()
    try {
      while (this.#again && !this.#stopped && !this.#paused) {
        this.#again = false
        await this.#sendDue()
      }
    } catch (error) {
      this.#parts.log.error({ err: error }, 'the mail outbox failed')
      this.#pause()
    }
    this.#running = false
    if (this.#stopped) return
    const afterMs = Math.max(limits.mailPollMs, this.#pauseLeftMs)
    this.#cancelTimer = this.#parts.timer(afterMs, () => this.wake())
  }

  /** Sends mails until none is due, the server is unreachable or the sender stops. */
  async #sendDue(): Promise<void> {
    let due: OutboxMessage[]
    do {
      due = await this.#parts.outbox.take(limits.mailBatchMax)
      for (const message of due) {
        if (this.#stopped || !(await this.#sendOne(message))) return
      }
    } while (due.length === limits.mailBatchMax)
  }

  /** @returns whether to continue with the next mail */
  async #sendOne(message: OutboxMessage): Promise<boolean> {
    const { outbox, server, clock, linkBaseUrl } = this.#parts
    const { id, mail, attempts } = message
    const nowMs = clock()
    if ('expiresAtMs' in mail && mail.expiresAtMs <= nowMs) {
      await this.#drop(message, attempts, 'its link has expired')
      return true
    }
    const content = writeMail(mail, { linkBaseUrl, nowMs })
    const result = await server.send({ id, to: mail.to, ...content }, this.#cutOff.signal)
    if (result.kind === 'sent') {
      this.#resume()
      await outbox.done(id)
      return true
    }
    // An abort by `stop` is not a failure.
    if (this.#cutOff.signal.aborted) return false
    if (result.kind === 'unreachable') this.#pause()
    else this.#resume()
    await this.#failed(message, result)
    return result.kind !== 'unreachable'
  }

  async #failed(message: OutboxMessage, result: Exclude<MailResult, { kind: 'sent' }>): Promise<void> {
    const { outbox, clock, log } = this.#parts
    const attempts = message.attempts + 1
    if (result.kind === 'rejected' || attempts >= limits.mailAttemptsMax) {
      await this.#drop(message, attempts, result.reason)
      return
    }
    const retryAtMs = clock() + this.#backoffMs(attempts)
    log.warn({ mail: message.id, attempts, reason: result.reason }, 'a mail could not be sent yet')
    await outbox.failed(message.id, retryAtMs, attempts)
  }

  async #drop({ id, mail }: OutboxMessage, attempts: number, reason: string): Promise<void> {
    this.#parts.log.error({ mail: id, kind: mail.kind, attempts, reason }, 'a mail was dropped')
    await this.#parts.outbox.failed(id, undefined, attempts)
  }

  #pause(): void {
    this.#pauses++
    this.#pausedUntilMs = this.#parts.clock() + this.#backoffMs(this.#pauses)
  }

  #resume(): void {
    this.#pauses = 0
    this.#pausedUntilMs = 0
  }

  #backoffMs(failures: number): number {
    return backoffMs(
      { firstMs: limits.mailRetryBaseMs, maxMs: limits.mailRetryMaxMs },
      failures,
      () => asBuffer(this.#parts.random(4)).readUInt32LE() / 2 ** 32,
    )
  }
}
