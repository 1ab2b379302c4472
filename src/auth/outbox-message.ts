import { anyOf, type Checked, fields, isNumber, isText, oneOf, textUpTo } from '../base/shape.js'

const isLinkMail = fields({
  kind: oneOf('magicLink', 'verifyEmail', 'passwordReset'),
  /** The result of `normalizeEmail`. */
  to: isText,
  /** The organism of the namespace; empty for the root namespace. */
  organismId: isText,
  /** The raw token, which may only appear in this mail. */
  token: isText,
  /** Unix milliseconds at which the link expires; a mail that has not been sent by then is dropped. */
  expiresAtMs: isNumber,
})
/** A mail with a link that contains a token. */
export type LinkMail = Checked<typeof isLinkMail>

/**
 * Notifies the owner of an address of an attempt to register with it, or of a new passkey, which an attacker
 * may have registered with a stolen token.
 */
const isNoticeMail = fields({
  kind: oneOf('registrationTried', 'passkeyRegistered'),
  to: isText,
  organismId: isText,
})

/** A mail about an authentication event. */
export type AuthMail = LinkMail | Checked<typeof isNoticeMail>

/** A mail in the durable outbox (docs/adr/0010-auth-state.md). */
export const isOutboxMessage = fields({
  /** 1 to 64 letters, digits, _ and -. It is the same for all attempts and becomes the Message-ID. */
  id: textUpTo(64),
  attempts: isNumber,
  mail: anyOf(isLinkMail, isNoticeMail),
})
export type OutboxMessage = Checked<typeof isOutboxMessage>
