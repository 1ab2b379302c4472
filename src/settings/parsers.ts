import { constants, accessSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { hostUrls } from '../base/host-urls.js'
import { limits } from '../base/limits/limits.js'
import { readBounded } from '../base/bounded-file.js'
import { seedBytes } from '../strand/keys.js'
import { parseAllowedRedirect } from '../auth/redirect.js'

/** Parses the text of a setting. @returns undefined if the text is not allowed */
export type Parse<T> = (text: string) => T | undefined

/** A decimal integer from `min` to `max`. Signs, fractions and leading zeros are refused. */
export function integer(min: number, max: number): Parse<number> {
  return (text) => {
    if (!/^(0|[1-9]\d{0,15})$/.test(text)) return undefined
    const value = Number(text)
    return value >= min && value <= max ? value : undefined
  }
}

/** Exactly `true` or `false`. */
export const boolean: Parse<boolean> = (text) =>
  text === 'true' ? true : text === 'false' ? false : undefined

export function oneOf<const T extends string>(words: readonly T[]): Parse<T> {
  return (text) => words.find((word) => word === text)
}

export function matching(pattern: RegExp): Parse<string> {
  return (text) => (pattern.test(text) ? text : undefined)
}

/** An IP address without brackets, or a host name (RFC 1123). */
export const host: Parse<string> = (text) =>
  isIP(text) !== 0 || /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9]([a-z0-9-]{0,62}))*$/i.test(text)
    ? text
    : undefined

/**
 * A path, resolved against the working directory. A path that begins with `~` is refused: a shell does not
 * expand it within quotes, so that it would name a folder `~`.
 */
export const path: Parse<string> = (text) =>
  text === '' || text.startsWith('~') || text.includes('\0') ? undefined : resolve(text)

/** The absolute path of a file that this process can read. */
export const readableFile: Parse<string> = (text) => {
  const file = path(text)
  if (file === undefined) return undefined
  try {
    accessSync(file, constants.R_OK)
    return file
  } catch {
    return undefined
  }
}

/** 64 hex digits, as 32 bytes. */
export const seed: Parse<Buffer> = (text) =>
  /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : undefined

/** The path of a file with a seed: 64 hex digits, possibly with white space around them, or 32 bytes. */
export const seedFile: Parse<Buffer> = (text) => {
  const file = path(text)
  if (file === undefined) return undefined
  try {
    const bytes = readBounded(file, limits.smallFileBytesMax)
    return bytes.length === seedBytes ? bytes : seed(bytes.toString('latin1').trim())
  } catch {
    return undefined
  }
}

/** Items separated by commas, trimmed; an empty text is an empty list. */
export function list(item: (text: string) => boolean): Parse<readonly string[]> {
  return (text) => {
    const items = text.trim() === '' ? [] : text.split(',').map((part) => part.trim())
    return items.every(item) ? Object.freeze(items) : undefined
  }
}

/** Whether a text is an address range such as `10.0.0.0/8` or `fd00::/8`. */
export function isCidr(text: string): boolean {
  // The library also accepts octal and shortened IPv4 forms, which programs read differently.
  const address = text.slice(0, text.lastIndexOf('/'))
  return isIP(address) !== 0 && ipaddr.isValidCIDR(text)
}

/** The URI of a PostgreSQL database with one host or several (PostgreSQL manual, Connection URIs). */
export const postgresUrl: Parse<string> = (text) =>
  /^postgres(ql)?:\/\/\S+$/.test(text) && (URL.canParse(text) || hostUrls(text).length > 0) ? text : undefined

/** Whether a text is a sender of web hooks (CloudEvents HTTP 1.1 Web Hooks, 4.1.1), or `*`. */
export function isWebhookOrigin(text: string): boolean {
  return text === '*' || /^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/i.test(text)
}

/** Whether a text is a web origin exactly as browsers send it (RFC 6454). */
export function isOrigin(text: string): boolean {
  // URL parsing accepts a star in a host name, which users would expect to match subdomains.
  if (!/^https?:\/\/[^*]+$/.test(text) || !URL.canParse(text)) return false
  return new URL(text).origin === text
}

/** An Ed25519 public key as 64 hex digits, converted to lower case. */
export const publicKey: Parse<string> = (text) =>
  /^[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : undefined

/** The URL of a mail server. */
export const smtpUrl: Parse<string> = (text) => {
  const url = parseUrl(text)
  if (url === undefined || url.hostname === '' || url.hash !== '') return undefined
  return url.protocol === 'smtp:' || url.protocol === 'smtps:' ? text : undefined
}

/** A mail address, or a name and a mail address in angle brackets. */
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

/**
 * The base address of web pages exactly as a URL parser writes it, such as with a host in lower case. Parts of
 * the server and of other programs compare it as text, before and after parsing.
 */
export const browserBase: Parse<string> = (text) => {
  const url = webBase(text) === undefined ? undefined : new URL(text)
  return url !== undefined && [url.href, url.href.replace(/\/$/, '')].includes(text) ? text : undefined
}

/** The address of the server of a provider, without a slash at the end. */
export const oauthServerUrl: Parse<string> = (text) => webBase(text)?.replace(/\/+$/, '')

/** An address to which users may be redirected with their tokens. */
export const allowedRedirect: Parse<string> = (text) =>
  parseAllowedRedirect(text) === undefined ? undefined : text

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) && !/\s/.test(text) ? new URL(text) : undefined
}
