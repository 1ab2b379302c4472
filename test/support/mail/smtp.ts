import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { eventually } from '../eventually.js'

/** A received mail, with quoted-printable decoded. */
export interface Mail {
  to: string[]
  subject: string
  text: string
  messageId: string
}

/** A mail server in a separate process. */
export interface SmtpProcess {
  url: string
  mails: Mail[]
  /** Waits for the next mail that was not returned yet. */
  next(): Promise<Mail>
  stop(): Promise<void>
}

/** Starts a real mail server on the loopback address. */
export async function startSmtpProcess(port: number): Promise<SmtpProcess> {
  const file = join(import.meta.dirname, 'smtp-process.mjs')
  const child = spawn(process.execPath, [file, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const mails: Mail[] = []
  let listening = false
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message: unknown = JSON.parse(line)
    if (message === 'listening') listening = true
    else mails.push(readMail(JSON.parse(line)))
  })
  await eventually(() => listening)
  let returned = 0
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    async next() {
      await eventually(() => mails.length > returned)
      const mail = mails[returned++]
      if (mail === undefined) throw new Error('Expected a mail')
      return mail
    },
    async stop() {
      child.kill()
      await exited
    },
  }
}

/** The link in a mail, and its token. */
export function linkIn({ text }: Mail): { url: URL; token: string } {
  const url = new URL(/^https?:\/\/\S+$/m.exec(text)?.[0] ?? '')
  return { url, token: url.searchParams.get('token') ?? '' }
}

function readMail({ to, raw }: { to: string[]; raw: string }): Mail {
  const header = (name: string) => new RegExp(`^${name}: (.*)\\r$`, 'm').exec(raw)?.[1] ?? ''
  const text = raw
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_whole, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll('\r', '')
  return { to, subject: header('Subject'), text, messageId: header('Message-ID') }
}
