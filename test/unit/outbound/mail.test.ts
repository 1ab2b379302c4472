import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { smtpServer } from '../../../src/outbound/mail.js'
import { dieAfter, startSmtp, startSockets } from './smtp-servers.js'

const closing: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const server of closing.splice(0)) await server.close()
})

function closed<T extends { close(): Promise<void> }>(server: T): T {
  closing.push(server)
  return server
}

const from = 'The Service <no-reply@service.example>'
const mail = {
  id: 'mail-1',
  to: 'ann@example.org',
  subject: 'Sign in – now',
  text: 'https://app.example/magic-link?token=abc',
  html: '<p>link</p>',
}
const never = new AbortController().signal

function replying(responseCode: number): Error {
  return Object.assign(new Error('No ann@example.org here'), { responseCode })
}

describe('smtpServer', () => {
  it('sends text and HTML with sender, Message-ID and a header against automatic replies', async () => {
    const server = closed(await startSmtp())
    expect(await smtpServer({ smtpUrl: server.url, from }).send(mail, never)).toEqual({ kind: 'sent' })
    expect(server.received).toHaveLength(1)
    const [{ raw, ...envelope } = { raw: '' }] = server.received
    expect(envelope).toEqual({ from: 'no-reply@service.example', to: ['ann@example.org'] })
    expect(raw).toMatch(/^From: The Service <no-reply@service\.example>\r$/m)
    expect(raw).toMatch(/^To: ann@example\.org\r$/m)
    expect(raw).toMatch(/^Message-ID: <mail-1@service\.example>\r$/m)
    expect(raw).toMatch(/^Auto-Submitted: auto-generated\r$/m)
    expect(raw).toMatch(/^Subject: =\?UTF-8\?/m)
    expect(raw).toContain('text/plain')
    expect(raw).toContain('text/html')
  })

  it.each([
    'ann@example.org, eve@example.net',
    'ann@example.org\r\nBcc: eve@example.net',
    'ann <eve@example.net>',
  ])('only sends to the given address: %j', async (to) => {
    const server = closed(await startSmtp())
    await smtpServer({ smtpUrl: server.url, from }).send({ ...mail, to }, never)
    expect(server.received.flatMap((got) => got.to)).not.toContain('eve@example.net')
    for (const { raw } of server.received) expect(raw).not.toMatch(/^Bcc:/m)
  })

  it('logs in with the credentials of the URL', async () => {
    const users: unknown[] = []
    const server = closed(
      await startSmtp({
        authOptional: false,
        allowInsecureAuth: true,
        onAuth({ username, password }, _session, callback) {
          users.push([username, password])
          callback(null, { user: username })
        },
      }),
    )
    const smtpUrl = server.url.replace('//', '//us%40er:p%3Ass@')
    expect(await smtpServer({ smtpUrl, from }).send(mail, never)).toEqual({ kind: 'sent' })
    expect(users).toEqual([['us@er', 'p:ss']])
  })

  it('rejects an address beyond ASCII if the server does not offer SMTPUTF8', async () => {
    const to = 'josé@example.org'
    const plain = closed(await startSmtp({ hideSMTPUTF8: true }))
    expect(await smtpServer({ smtpUrl: plain.url, from }).send({ ...mail, to }, never)).toEqual({
      kind: 'rejected',
      reason: expect.stringContaining('does not offer SMTPUTF8'),
    })
    expect(plain.received).toEqual([])
    const server = closed(await startSmtp())
    expect(await smtpServer({ smtpUrl: server.url, from }).send({ ...mail, to }, never)).toEqual({
      kind: 'sent',
    })
    expect(server.received[0]?.to).toEqual([to])
    await server.close()
    expect(await smtpServer({ smtpUrl: server.url, from }).send({ ...mail, to }, never)).toMatchObject({
      kind: 'unreachable',
    })
  })

  it.each([
    ['rejected', 550],
    ['deferred', 450],
  ])(
    'returns %s if the recipient is refused with %d, without the address in the reason',
    async (kind, code) => {
      const server = closed(
        await startSmtp({ onRcptTo: (_to, _session, callback) => callback(replying(code)) }),
      )
      const result = await smtpServer({ smtpUrl: server.url, from }).send(mail, never)
      expect(result).toEqual({ kind, reason: `EENVELOPE RCPT TO ${code}` })
    },
  )

  it.each([
    ['rejected', 552],
    ['deferred', 451],
  ])('returns %s if the content is refused with %d', async (kind, code) => {
    const server = closed(
      await startSmtp({
        onData(stream, _session, callback) {
          stream.resume()
          stream.on('end', () => callback(replying(code)))
        },
      }),
    )
    expect(await smtpServer({ smtpUrl: server.url, from }).send(mail, never)).toMatchObject({ kind })
  })

  it('returns unreachable if the sender or the password is refused, which an operator can correct', async () => {
    const noSender = closed(
      await startSmtp({ onMailFrom: (_from, _session, callback) => callback(replying(553)) }),
    )
    expect(await smtpServer({ smtpUrl: noSender.url, from }).send(mail, never)).toMatchObject({
      kind: 'unreachable',
    })
    const noPassword = closed(
      await startSmtp({
        allowInsecureAuth: true,
        onAuth: (_auth, _session, callback) => callback(new Error('Wrong')),
      }),
    )
    const result = await smtpServer({ smtpUrl: noPassword.url.replace('//', '//u:secret@'), from }).send(
      mail,
      never,
    )
    expect(result).toEqual({ kind: 'unreachable', reason: expect.stringMatching(/^EAUTH /) })
  })

  it('returns unreachable if the server is stopped', async () => {
    const server = await startSockets(() => {})
    await server.close()
    expect(await smtpServer({ smtpUrl: server.url, from }).send(mail, never)).toMatchObject({
      kind: 'unreachable',
    })
  })

  it.each(['EHLO', 'DATA', 'the content'] as const)(
    'returns unreachable if the server crashes after %s',
    async (command) => {
      const server = closed(await startSockets(dieAfter(command)))
      expect(await smtpServer({ smtpUrl: server.url, from }).send(mail, never)).toMatchObject({
        kind: 'unreachable',
      })
    },
  )

  it('returns unreachable if the server does not reply in time', async () => {
    const server = closed(await startSockets(() => {}))
    const timeouts = { replyMs: 50, sendMs: 60_000 }
    const result = await smtpServer({ smtpUrl: server.url, from }, timeouts).send(mail, never)
    expect(result).toMatchObject({ kind: 'unreachable', reason: expect.stringContaining('ETIMEDOUT') })
  })

  it('returns unreachable if the server sends single lines forever', async () => {
    const dripping = (socket: {
      write(text: string): unknown
      on(name: 'close', run: () => void): unknown
    }) => {
      const drip = setInterval(() => socket.write('220-wait\r\n'), 5)
      socket.on('close', () => clearInterval(drip))
    }
    const server = closed(await startSockets(dripping))
    const timeouts = { replyMs: 60_000, sendMs: 100 }
    const result = await smtpServer({ smtpUrl: server.url, from }, timeouts).send(mail, never)
    expect(result).toMatchObject({ kind: 'unreachable' })
  })

  it('stops immediately on an abort, and closes the connection', async () => {
    const server = closed(await startSockets((socket) => socket.write('220 test\r\n')))
    const abort = new AbortController()
    const sending = smtpServer({ smtpUrl: server.url, from }).send(mail, abort.signal)
    while (server.sockets.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const ended = once(server.sockets[0]!, 'close')
    server.sockets[0]?.resume()
    abort.abort()
    expect(await sending).toMatchObject({ kind: 'unreachable' })
    await ended
  })
})
