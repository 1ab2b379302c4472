import { either, isNumber, isText, members, oneOf, type Check } from '../base/shape.js'

/** A mail with a link that carries a token. */
export interface LinkMail {
  kind: 'magicLink' | 'verifyEmail' | 'passwordReset'
  /** As `normalizeEmail` gives it. */
  to: string
  /** The organism whose namespace it is of; empty for the root one. */
  organismId: string
  /** The raw token, which may appear only in this mail and its link. */
  token: string
  /** Unix milliseconds at which the link stops working; a mail that has not been sent by then is given up. */
  expiresAtMs: number
}

/**
 * Tells the owner of an address that somebody tried to register with it, or that a passkey was added to the account,
 * which somebody may have done with a stolen token.
 */
export interface NoticeMail {
  kind: 'registrationTried' | 'passkeyRegistered'
  to: string
  organismId: string
}

/** What an authentication event has to say by mail. */
export type AuthMail = LinkMail | NoticeMail

/** A mail in the durable outbox (docs/adr/0010-auth-state.md). */
export interface OutboxMessage {
  /** 1 to 64 of letters, digits, _ and -; stays the same over all tries and makes the Message-ID. */
  id: string
  /** Tries that have failed. */
  attempts: number
  mail: AuthMail
}

/** Whether a value is a mail of the outbox. */
export const isOutboxMessage: Check<OutboxMessage> = members<OutboxMessage>({
  id: isText,
  attempts: isNumber,
  mail: either(
    members<LinkMail>({
      kind: oneOf('magicLink', 'verifyEmail', 'passwordReset'),
      to: isText,
      organismId: isText,
      token: isText,
      expiresAtMs: isNumber,
    }),
    members<NoticeMail>({
      kind: oneOf('registrationTried', 'passkeyRegistered'),
      to: isText,
      organismId: isText,
    }),
  ),
})
