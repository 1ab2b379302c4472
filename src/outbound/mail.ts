import { createTransport } from 'nodemailer'
import { limits } from '../base/limits/limits.js'
import type { MailContent } from './mail-templates.js'

export interface MailServerSettings {
  /** SERVICE_MAIL_SMTP_URL, `smtp://` or `smtps://`, with credentials. Never logged. */
  smtpUrl: string
  /** SERVICE_MAIL_FROM, `Name <address>` or only the address. */
  from: string
}

/** Time limits of sending, milliseconds. */
export interface MailTimeouts {
  /** For the connection, for the greeting, and between two replies. */
  replyMs: number
  /** For one mail in all, because a server could send single bytes forever. */
  sendMs: number
}

export interface OutgoingMail extends MailContent {
  /** The same for all attempts. It becomes the Message-ID, by which receivers recognise duplicates. */
  id: string
  to: string
}

/**
 * The result of sending. `rejected`: the server will never accept this mail. `deferred`: the server does not
 * accept this mail now. `unreachable`: the server fails or refuses all mail from us, so that other mails
 * would fail too. Reasons are codes, without addresses and credentials.
 */
export type MailResult = { kind: 'sent' } | { kind: 'rejected' | 'deferred' | 'unreachable'; reason: string }

export interface MailServer {
  /** Does not throw if the server fails. After an abort, the result is `unreachable`. */
  send(mail: OutgoingMail, signal: AbortSignal): Promise<MailResult>
}

const defaultTimeouts: MailTimeouts = { replyMs: limits.mailReplyMs, sendMs: limits.mailSendMs }

/**
 * Creates the transport to a mail server. Each mail uses a new connection, because mails are rare and idle
 * ones may break.
 */
export function smtpServer(
  { smtpUrl, from }: MailServerSettings,
  { replyMs, sendMs }: MailTimeouts = defaultTimeouts,
): MailServer {
  const options = {
    url: smtpUrl,
    connectionTimeout: replyMs,
    greetingTimeout: replyMs,
    socketTimeout: replyMs,
    dnsTimeout: replyMs,
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
 * Whether a server supports addresses beyond ASCII, according to its last reply to EHLO. The library sends
 * them to any server, and a server that drops the eighth bit would deliver to a different mailbox.
 * @throws Error if the server is unreachable, or the signal is aborted first
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
 * A refusal of the recipient or the content concerns this mail. Any earlier failure, even a refused sender or
 * password, concerns the server or its settings, which an operator can correct before the last attempt.
 */
function resultOf(error: unknown): MailResult {
  const code = memberOf(error, 'code')
  const command = memberOf(error, 'command')
  const reply = memberOf(error, 'responseCode')
  const reason = [code, command, reply].filter((part) => part !== undefined).join(' ') || 'unknown'
  // The library refused the envelope, which concerns this mail.
  if (code === 'EENVELOPE' && command === 'API') return { kind: 'rejected', reason }
  const aboutMail = command === 'RCPT TO' || command === 'DATA'
  if (!aboutMail || reply === undefined) return { kind: 'unreachable', reason }
  return { kind: memberOf(error, 'permanent') === true ? 'rejected' : 'deferred', reason }
}

function memberOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
}
