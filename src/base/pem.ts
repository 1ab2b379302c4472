import { readBounded } from './bounded-file.js'
import { limits } from './limits/limits.js'

/** The mark that some editors of Windows put before a text; OpenSSL would skip the first block after it. */
const byteOrderMark = /^\uFEFF/

/** A text of PEM blocks (RFC 7468) without a byte order mark. */
export function withoutMark(pem: string): string {
  return pem.replace(byteOrderMark, '')
}

/**
 * Reads a PEM file without its byte order mark.
 * @returns the text, and whether the file has the mark
 * @throws Error of the file system
 */
export function readPem(path: string): { text: string; marked: boolean } {
  const whole = readBounded(path, limits.pemFileBytesMax).toString('utf8')
  const text = withoutMark(whole)
  return { text, marked: text !== whole }
}
