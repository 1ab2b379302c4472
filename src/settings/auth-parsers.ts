import { parseAllowedRedirect } from '../auth/redirect.js'
import type { Parse } from './parsers.js'

/** An Ed25519 public key as 64 hex digits, made lower-case. */
export const publicKey: Parse<string> = (text) =>
  /^[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : undefined

/** The URL of a mail server. */
export const smtpUrl: Parse<string> = (text) => {
  const url = parseUrl(text)
  if (url === undefined || url.hostname === '' || url.hash !== '') return undefined
  return url.protocol === 'smtp:' || url.protocol === 'smtps:' ? text : undefined
}

/** One mail address, with or without a name before it in angle brackets. */
export const mailAddress: Parse<string> = (text) => {
  const address = /^[^<>"\\,;:\x00-\x1f\x7f]*<([^<>]+)>$/.exec(text)?.[1] ?? text
  return /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(
    address,
  )
    ? text
    : undefined
}

/** The base address of web pages. */
export const webBase: Parse<string> = (text) => {
  const url = parseUrl(text)
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  const bare = url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  return bare && !/[?#\s]/.test(text) ? text : undefined
}

/** The address of a provider's server, without the slash at its end. */
export const oauthServerUrl: Parse<string> = (text) => webBase(text)?.replace(/\/+$/, '')

/** An address that users may be sent to with their tokens. */
export const allowedRedirect: Parse<string> = (text) =>
  parseAllowedRedirect(text) === undefined ? undefined : text

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) && !/\s/.test(text) ? new URL(text) : undefined
}
