import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'

/** Characters per piece of the body. */
const PIECE_CHARS = 65_536

/**
 * Streams rows as one request to the ingest route; rows are read while the body is sent.
 * @param {{url: string, key: string, gzip: boolean}} server
 * @param {Iterable<import('./data-sets.mjs').Row>} rows
 * @param {(row: import('./data-sets.mjs').Row) => void} onRow called when a row is added to the body
 * @returns {Promise<{accepted: number, rejected: number, errors: object[]}>} the server's summary
 * @throws {Error} when the server refuses the stream
 */
export async function upload({ url, key, gzip }, rows, onRow) {
  const source = Readable.from(pieces(rows, onRow), { objectMode: !gzip })
  const body = gzip ? source.compose(createGzip()) : source
  const response = await fetch(`${url}/v1/ingest`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/x-ndjson',
      ...(gzip && { 'content-encoding': 'gzip' }),
    },
    body,
    duplex: 'half',
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`The ingest was answered ${response.status}: ${text}`)
  return JSON.parse(text)
}

function* pieces(rows, onRow) {
  let text = ''
  for (const row of rows) {
    text += `${JSON.stringify(row)}\n`
    onRow(row)
    if (text.length < PIECE_CHARS) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}
