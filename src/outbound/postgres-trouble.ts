import { DatabaseError } from 'pg'
import { limits } from '../base/limits/limits.js'

/** What a failure of a database means to its operator: one sentence, without a full stop. */
export function describeDatabase(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!(error instanceof DatabaseError)) return describeConnection(error)
  const { code = '' } = error
  const message = error.message.slice(0, limits.postgresTroubleCharsMax)
  if (code === NO_DATABASE) return `${message}: create it, or name another one in the URL`
  const meaning = meaningOf(code)
  return meaning === undefined ? `${message} (${code})` : `${meaning}: ${message}`
}

/** What an SQLSTATE means to an operator, without PostgreSQL's message; undefined where it is about a statement. */
export function meaningOf(code: string): string | undefined {
  return code.startsWith('28') ? 'it does not let the role in' : meanings[code]
}

const NO_DATABASE = '3D000'

const meanings: Readonly<Record<string, string>> = {
  [NO_DATABASE]: 'it has no database of this name',
  '25006': 'it only reads',
  '42501': 'the role has no right to it',
  '53100': 'its disk is full',
}

/** Codes of TLS by which Node refuses a certificate (node:tls, X509 certificate error codes). */
const certificateCode = /CERT|CRL|^UNABLE_TO_|^HOSTNAME_MISMATCH$|^INVALID_CA$|^PATH_LENGTH_EXCEEDED$/

/** An error with several causes, one for each address of a host, has no text of its own. */
function describeConnection(error: Error): string {
  const { message } = error
  if ('code' in error && certificateCode.test(String(error.code)))
    return `its TLS certificate is not accepted: ${message}`
  if (message.includes('does not support SSL')) return 'it takes no TLS, and the URL asks for that'
  if (message.includes('client password must be')) return 'it asks for a password, and the URL has none'
  if (message !== '') return message
  return error instanceof AggregateError ? error.errors.map(describeDatabase).join(', ') : error.name
}
