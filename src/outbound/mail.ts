import { createTransport } from 'nodemailer'
import { limits } from '../base/limits/limits.js'
import type { MailContent } from './mail-templates.js'

/** The mail server and the sender. */
export interface MailServerSettings {
  /** SERVICE_MAIL_SMTP_URL, `smtp://` or `smtps://`, with the credentials in it. Never logged. */
  smtpUrl: string
  /** SERVICE_MAIL_FROM, as `Name <address>` or the address alone. */
  from: string
}

/** Time limits of sending, milliseconds. */
export interface MailTimeouts {
  /** For the connection, for the greeting, and between two answers. */
  silenceMs: number
  /** For one mail in all, since a server that sends single bytes is never silent. */
  sendMs: number
}

/** One mail to one address. */
export interface OutgoingMail extends MailContent {
  /** The same for all tries: by the Message-ID made from it, receivers recognise duplicates. */
  id: string
  to: string
}

/**
 * The result. `rejected`: the server will never accept this mail. `deferred`: the server works, but does not accept
 * this mail now. `unreachable`: the server does not work, or accepts no mail from us, so other mails would fail as
 * well. Reasons are codes, without addresses and credentials.
 */
export type MailResult = { kind: 'sent' } | { kind: 'rejected' | 'deferred' | 'unreachable'; reason: string }

/** Sends mail. */
export interface MailServer {
  /** Does not throw if the server fails. An aborted signal ends it as `unreachable`. */
  send(mail: OutgoingMail, signal: AbortSignal): Promise<MailResult>
}

const usualTimeouts: MailTimeouts = { silenceMs: limits.mailSilenceMs, sendMs: limits.mailSendMs }

/**
 * Makes the transport to a mail server. Each mail gets a connection of its own: mails are rare, and nobody would notice
 * that an idle connection has died.
 */
export function smtpServer(
  { smtpUrl, from }: MailServerSettings,
  { silenceMs, sendMs }: MailTimeouts = usualTimeouts,
): MailServer {
  const options = {
    url: smtpUrl,
    connectionTimeout: silenceMs,
    greetingTimeout: silenceMs,
    socketTimeout: silenceMs,
    dnsTimeout: silenceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
  const transport = createTransport(options)
  const domain = /@([^@>\s]+)>?\s*$/.exec(from)?.[1] ?? 'localhost'
  return {
    async send({ id, to, subject, text, html }, signal) {
      const ended = AbortSignal.any([signal, AbortSignal.timeout(sendMs)])
      try {
        if (/[^\x00-\x7f]/.test(to) && !(await offersUtf8(options, ended))) return needsUtf8
        await transport.sendMail({
          from,
          // An object, so that a comma or bracket in an address cannot split it in two.
          to: { name: '', address: to },
          subject,
          text,
          html,
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
          signal: ended,
        })
        return { kind: 'sent' }
      } catch (error) {
        return resultOf(error)
      }
    },
  }
}

const needsUtf8: MailResult = {
  kind: 'rejected',
  reason:
    'The mail server does not offer SMTPUTF8 (RFC 6531), which an address with letters beyond ASCII needs',
}

/**
 * Whether a server takes addresses beyond ASCII, by its last answer to EHLO. The library sends them to any server, and one
 * that drops the eighth bit would deliver to another mailbox.
 * @throws Error when the server cannot be reached, or the signal is aborted first
 */
async function offersUtf8(options: { url: string }, signal: AbortSignal): Promise<boolean> {
  let offers = false
  const debug = ({ tnx }: { tnx?: string }, line: string) => {
    if (tnx === 'server' && /^250[ -]/.test(line)) offers = /^250[ -]SMTPUTF8\b/im.test(line)
  }
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  const transport = createTransport({ ...options, transactionLog: true, logger: { debug } })
  await Promise.race([transport.verify(), aborted])
  return offers
}

/**
 * A refusal of recipient or content is about this mail. Everything before, even a refused sender or password, is about
 * the server or its settings, which an operator can correct before the tries are over.
 */
function resultOf(error: unknown): MailResult {
  const code = memberOf(error, 'code')
  const command = memberOf(error, 'command')
  const reply = memberOf(error, 'responseCode')
  const reason = [code, command, reply].filter((part) => part !== undefined).join(' ') || 'unknown'
  // The library checks the envelope itself: this fault is only about this mail.
  if (code === 'EENVELOPE' && command === 'API') return { kind: 'rejected', reason }
  const aboutMail = command === 'RCPT TO' || command === 'DATA'
  if (!aboutMail || reply === undefined) return { kind: 'unreachable', reason }
  return { kind: memberOf(error, 'permanent') === true ? 'rejected' : 'deferred', reason }
}

function memberOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
}
