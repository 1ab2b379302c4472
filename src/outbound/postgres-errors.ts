import { DatabaseError } from 'pg'
import { limits } from '../base/limits/limits.js'

/** Describes a failure of a database for its operator, in one sentence without a full stop. */
export function describeDatabase(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!(error instanceof DatabaseError)) return describeConnection(error)
  const { code = '' } = error
  const message = error.message.slice(0, limits.postgresErrorCharsMax)
  if (code === NO_DATABASE) return `${message}: create it, or use another one in the URL`
  const meaning = meaningOf(code)
  return meaning === undefined ? `${message} (${code})` : `${meaning}: ${message}`
}

/** The meaning of an SQLSTATE for an operator; undefined if it concerns a statement. */
export function meaningOf(code: string): string | undefined {
  return code.startsWith('28') ? 'it refuses the login of the role' : meanings[code]
}

const NO_DATABASE = '3D000'

const meanings: Readonly<Record<string, string>> = {
  [NO_DATABASE]: 'it has no database of this name',
  '25006': 'it is read-only',
  '42501': 'the role lacks a privilege',
  '53100': 'its disk is full',
}

/** Codes with which Node refuses a certificate (node:tls, X509 certificate error codes). */
const certificateCode = /CERT|CRL|^UNABLE_TO_|^HOSTNAME_MISMATCH$|^INVALID_CA$|^PATH_LENGTH_EXCEEDED$/

/** An AggregateError, with one cause for each address of a host, has no message. */
function describeConnection(error: Error): string {
  const { message } = error
  if ('code' in error && certificateCode.test(String(error.code)))
    return `its TLS certificate is not accepted: ${message}`
  if (message.includes('does not support SSL')) return 'it does not support TLS, which the URL requires'
  if (message.includes('client password must be')) return 'it requires a password, and the URL has none'
  if (message !== '') return message
  return error instanceof AggregateError ? error.errors.map(describeDatabase).join(', ') : error.name
}
