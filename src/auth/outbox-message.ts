import { anyOf, type Checked, fields, isNumber, isText, oneOf } from '../base/shape.js'

const isLinkMail = fields({
  kind: oneOf('magicLink', 'verifyEmail', 'passwordReset'),
  /** As `normalizeEmail` gives it. */
  to: isText,
  /** The organism whose namespace it is of; empty for the root one. */
  organismId: isText,
  /** The raw token, which may appear only in this mail and its link. */
  token: isText,
  /** Unix milliseconds at which the link stops working; a mail that has not been sent by then is given up. */
  expiresAtMs: isNumber,
})
/** A mail with a link that carries a token. */
export type LinkMail = Checked<typeof isLinkMail>

/**
 * Tells the owner of an address that somebody tried to register with it, or that a passkey was added to the account,
 * which somebody may have done with a stolen token.
 */
const isNoticeMail = fields({
  kind: oneOf('registrationTried', 'passkeyRegistered'),
  to: isText,
  organismId: isText,
})

/** What an authentication event has to say by mail. */
export type AuthMail = LinkMail | Checked<typeof isNoticeMail>

/** A mail in the durable outbox (docs/adr/0010-auth-state.md). */
export const isOutboxMessage = fields({
  /** 1 to 64 of letters, digits, _ and -; stays the same over all tries and makes the Message-ID. */
  id: isText,
  /** Tries that have failed. */
  attempts: isNumber,
  mail: anyOf(isLinkMail, isNoticeMail),
})
export type OutboxMessage = Checked<typeof isOutboxMessage>
