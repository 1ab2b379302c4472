import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { OutboxMessage } from '../../../src/auth/outbox-message.js'
import { limits } from '../../../src/base/limits/limits.js'
import { createLogger } from '../../../src/base/log.js'
import { type MailServer, smtpServer } from '../../../src/outbound/mail.js'
import { MailSender, type MailOutbox } from '../../../src/outbound/mail-sender.js'
import { dieAfter, startSmtp, startSockets, type TestSmtpServer } from './smtp-servers.js'

interface Row extends OutboxMessage {
  retryAtMs: number
  dead: boolean
}

/** An outbox in memory. */
class MemoryOutbox implements MailOutbox {
  readonly rows = new Map<string, Row>()
  broken = false

  put(id: string, more: Partial<OutboxMessage['mail'] & { to: string; expiresAtMs: number }> = {}): void {
    const mail = {
      kind: 'magicLink' as const,
      to: `${id}@example.org`,
      organismId: '',
      token: `token-of-${id}`,
      expiresAtMs: Infinity,
      ...more,
    } as OutboxMessage['mail']
    this.rows.set(id, { id, attempts: 0, mail, retryAtMs: 0, dead: false })
  }

  async take(limit: number): Promise<OutboxMessage[]> {
    if (this.broken) throw new Error('The shard died')
    const due = [...this.rows.values()].filter(({ dead, retryAtMs }) => !dead && retryAtMs <= nowMs)
    return due.slice(0, limit).map(({ id, attempts, mail }) => ({ id, attempts, mail }))
  }

  async done(id: string): Promise<void> {
    this.rows.delete(id)
  }

  async failed(id: string, retryAtMs: number | undefined, attempts: number): Promise<void> {
    const row = this.rows.get(id)
    if (row === undefined) throw new Error(`Mail ${id} not found`)
    this.rows.set(id, { ...row, attempts, retryAtMs: retryAtMs ?? 0, dead: retryAtMs === undefined })
  }
}

let nowMs: number
let outbox: MemoryOutbox
let timers: { atMs: number; run: () => void }[]
let logged: string
let smtp: TestSmtpServer
const senders: MailSender[] = []
const closing: { close(): Promise<void> }[] = []

beforeEach(async () => {
  nowMs = 1_000_000
  outbox = new MemoryOutbox()
  timers = []
  logged = ''
  smtp = await startSmtp()
})
afterEach(async () => {
  for (const sender of senders.splice(0)) await sender.stop()
  for (const server of closing.splice(0)) await server.close()
  await smtp.close()
})

function senderTo(server: MailServer): MailSender {
  const sender = new MailSender({
    outbox,
    server,
    linkBaseUrl: 'https://app.example',
    clock: () => nowMs,
    random: (count) => Buffer.alloc(count),
    log: createLogger('trace', 'mail', { write: (line) => void (logged += line) }),
    timer(afterMs, run) {
      const timer = { atMs: nowMs + afterMs, run }
      timers.push(timer)
      return () => void timers.splice(timers.indexOf(timer), 1)
    },
  })
  senders.push(sender)
  return sender
}

function sender(smtpUrl = smtp.url, replyMs = 10_000): MailSender {
  return senderTo(smtpServer({ smtpUrl, from: 'no-reply@service.example' }, { replyMs, sendMs: 60_000 }))
}

/** Waits until the sender is idle, which is when it sets its timer. */
async function idle(): Promise<void> {
  while (timers.length === 0) await new Promise((resolve) => setImmediate(resolve))
}

/** Moves the clock to the next timer and runs it. @returns the elapsed milliseconds */
async function nextRound(): Promise<number> {
  const timer = timers.shift()
  if (timer === undefined) throw new Error('Expected a timer')
  const elapsedMs = timer.atMs - nowMs
  nowMs = timer.atMs
  timer.run()
  await idle()
  return elapsedMs
}

const subjectsTo = (server: TestSmtpServer) => server.received.map(({ to }) => to[0])

describe('MailSender', () => {
  it('sends the mails of the outbox in order, and removes them', async () => {
    for (const id of ['a', 'b', 'c']) outbox.put(id)
    sender().wake()
    await idle()
    expect(subjectsTo(smtp)).toEqual(['a@example.org', 'b@example.org', 'c@example.org'])
    expect(smtp.received[0]?.raw).toContain('token-of-a')
    expect(outbox.rows.size).toBe(0)
  })

  it('empties an outbox of more than one batch', async () => {
    const sent: string[] = []
    const count = limits.mailBatchMax * 2 + 1
    for (let index = 0; index < count; index++) outbox.put(`m${index}`)
    senderTo({
      async send({ id }) {
        sent.push(id)
        return { kind: 'sent' }
      },
    }).wake()
    await idle()
    expect(new Set(sent).size).toBe(count)
    expect(sent).toHaveLength(count)
  })

  it('sends one mail at a time even if it is woken often, and finds mails that were added later', async () => {
    let sending = 0
    let sendingMax = 0
    const sent: string[] = []
    outbox.put('a')
    const woken = senderTo({
      async send({ id }) {
        sendingMax = Math.max(sendingMax, ++sending)
        if (id === 'a') {
          outbox.put('b')
          woken.wake()
          woken.wake()
        }
        await new Promise((resolve) => setImmediate(resolve))
        sending--
        sent.push(id)
        return { kind: 'sent' }
      },
    })
    woken.wake()
    woken.wake()
    await idle()
    expect(sent).toEqual(['a', 'b'])
    expect(sendingMax).toBe(1)
  })

  it('polls the outbox for mails that become due later', async () => {
    sender().wake()
    await idle()
    outbox.put('a')
    expect(await nextRound()).toBe(limits.mailPollMs)
    expect(subjectsTo(smtp)).toEqual(['a@example.org'])
  })

  it('retries a deferred mail with longer pauses, and continues with the others', async () => {
    const picky = await startSmtp({
      onRcptTo({ address }, _session, callback) {
        if (address.startsWith('a')) callback(Object.assign(new Error('Later'), { responseCode: 450 }))
        else callback()
      },
    })
    closing.push(picky)
    outbox.put('a')
    outbox.put('b')
    sender(picky.url).wake()
    await idle()
    expect(subjectsTo(picky)).toEqual(['b@example.org'])
    const pausesMs: number[] = []
    for (let attempts = 1; attempts <= 4; attempts++) {
      const row = outbox.rows.get('a')
      expect(row).toMatchObject({ attempts, dead: false })
      pausesMs.push((row?.retryAtMs ?? 0) - nowMs)
      while (outbox.rows.get('a')?.attempts === attempts) await nextRound()
    }
    // Without jitter, each pause is half of its maximum.
    expect(pausesMs).toEqual([2_500, 5_000, 10_000, 20_000])
  })

  it('drops a mail after the last attempt, and logs it without address and token', async () => {
    outbox.put('a')
    senderTo({ send: async () => ({ kind: 'deferred', reason: 'EENVELOPE RCPT TO 450' }) }).wake()
    await idle()
    let rounds = 0
    while (outbox.rows.get('a')?.dead === false && rounds++ < 10_000) await nextRound()
    expect(outbox.rows.get('a')).toMatchObject({ dead: true, attempts: limits.mailAttemptsMax })
    expect(logged).toContain('a mail was dropped')
    expect(logged).not.toMatch(/example\.org|token-of/)
  })

  it('drops a mail immediately if the recipient does not exist', async () => {
    const strict = await startSmtp({
      onRcptTo: (_to, _session, callback) =>
        callback(Object.assign(new Error('No such mailbox'), { responseCode: 550 })),
    })
    closing.push(strict)
    outbox.put('a')
    sender(strict.url).wake()
    await idle()
    expect(outbox.rows.get('a')).toMatchObject({ dead: true, attempts: 1 })
  })

  it('does not send an expired link', async () => {
    outbox.put('a', { expiresAtMs: nowMs })
    outbox.put('b', { expiresAtMs: nowMs + 1 })
    sender().wake()
    await idle()
    expect(subjectsTo(smtp)).toEqual(['b@example.org'])
    expect(outbox.rows.get('a')).toMatchObject({ dead: true, attempts: 0 })
  })

  it('pauses longer each time while the server is unreachable, and only uses attempts of one mail', async () => {
    const stopped = await startSockets(() => {})
    await stopped.close()
    outbox.put('a')
    outbox.put('b')
    const paused = sender(stopped.url)
    paused.wake()
    await idle()
    expect([...outbox.rows.values()].map(({ attempts }) => attempts)).toEqual([1, 0])
    // A new mail does not end the pause.
    outbox.put('c')
    paused.wake()
    expect(outbox.rows.get('c')).toMatchObject({ attempts: 0 })
    const pauses = [await nextRound(), await nextRound(), await nextRound(), await nextRound()]
    expect(pauses).toEqual([5_000, 5_000, 10_000, 20_000])
    expect([...outbox.rows.values()].reduce((sum, { attempts }) => sum + attempts, 0)).toBe(5)
  })

  it('retries immediately when the clock is turned back during a pause, which would otherwise last for hours', async () => {
    nowMs = 100 * 3_600_000
    const stopped = await startSockets(() => {})
    await stopped.close()
    outbox.put('a')
    const paused = sender(stopped.url)
    paused.wake()
    await idle()
    nowMs -= 5 * 3_600_000
    outbox.put('b')
    paused.wake()
    await idle()
    expect([...outbox.rows.values()].reduce((sum, { attempts }) => sum + attempts, 0)).toBe(2)
  })

  it.each(['EHLO', 'DATA', 'the content'] as const)(
    'retries a mail with the same Message-ID if the server crashes after %s',
    async (command) => {
      let crashing = true
      const crashed = await startSockets(dieAfter(command))
      closing.push(crashed)
      const from = 'no-reply@service.example'
      const [before, after] = [crashed.url, smtp.url].map((smtpUrl) => smtpServer({ smtpUrl, from }))
      outbox.put('a')
      senderTo({ send: (mail, signal) => (crashing ? before : after)!.send(mail, signal) }).wake()
      await idle()
      expect(outbox.rows.get('a')).toMatchObject({ attempts: 1, dead: false })
      crashing = false
      while (outbox.rows.size > 0) await nextRound()
      expect(smtp.received).toHaveLength(1)
      expect(smtp.received[0]?.raw).toMatch(/^Message-ID: <a@service\.example>\r$/m)
    },
  )

  it('retries a mail if the server does not reply', async () => {
    const silent = await startSockets(() => {})
    closing.push(silent)
    outbox.put('a')
    sender(silent.url, 50).wake()
    await idle()
    expect(outbox.rows.get('a')).toMatchObject({ attempts: 1, dead: false })
  })

  it('continues after a failure of the outbox', async () => {
    outbox.put('a')
    outbox.broken = true
    sender().wake()
    await idle()
    expect(logged).toContain('The shard died')
    outbox.broken = false
    await nextRound()
    expect(subjectsTo(smtp)).toEqual(['a@example.org'])
  })

  it('finishes the current mail when it stops, and sends no other', async () => {
    outbox.put('a')
    outbox.put('b')
    let finish = () => {}
    const stopping = senderTo({
      async send() {
        await new Promise<void>((resolve) => (finish = resolve))
        return { kind: 'sent' }
      },
    })
    stopping.wake()
    await new Promise((resolve) => setImmediate(resolve))
    const stopped = stopping.stop()
    finish()
    await stopped
    expect([...outbox.rows.keys()]).toEqual(['b'])
    stopping.wake()
    expect(timers).toEqual([])
    expect([...outbox.rows.keys()]).toEqual(['b'])
  })

  it('aborts a mail that takes too long when it stops, without counting an attempt', async () => {
    const silent = await startSockets(() => {})
    closing.push(silent)
    outbox.put('a')
    const stopping = senderTo(
      smtpServer({ smtpUrl: silent.url, from: 'a@b.example' }, { replyMs: 60_000, sendMs: 60_000 }),
    )
    stopping.wake()
    while (silent.sockets.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const stopped = stopping.stop()
    expect(timers.map(({ atMs }) => atMs - nowMs)).toEqual([limits.mailStopMs])
    timers[0]?.run()
    await stopped
    expect(outbox.rows.get('a')).toMatchObject({ attempts: 0, dead: false })
  })
})
