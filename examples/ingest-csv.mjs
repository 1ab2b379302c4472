/**
 * Streams a CSV file into an agent: one record a row, its members named by the first row.
 *
 *     STRANDFAST_KEY=… node examples/ingest-csv.mjs readings.csv sensors
 *     … | STRANDFAST_KEY=… node examples/ingest-csv.mjs - sensors
 *
 * STRANDFAST_URL is the service's address (http://127.0.0.1:8787 unless set), or those of the nodes of a cluster between
 * commas. The agent is made when there is none.
 * Memory does not grow with the file. Cells that are JSON numbers as they stand become numbers; an empty cell is left
 * out. Exit codes: 0 all rows are written, 1 some were refused (they are named), 2 wrong use.
 */
import { createReadStream } from 'node:fs'
import { ServiceClient, ServiceError } from 'strandfast/client'

/** Cells of a row that a file may have at most: a quote that is never closed must not fill memory. */
const ROW_CHARS_MAX = 1_048_576

/** Rows of a CSV text (RFC 4180) that comes in pieces: quotes, doubled quotes, line breaks within quotes. */
async function* csvRows(pieces) {
  let row = []
  let cell = ''
  let rowChars = 0
  let quoted = false
  let quoteBefore = false
  let returnBefore = false
  for await (const piece of pieces) {
    for (const character of piece) {
      if (++rowChars > ROW_CHARS_MAX) throw new Error(`Expected rows of at most ${ROW_CHARS_MAX} characters`)
      if (quoted) {
        // A quote within quotes ends them, unless a second one follows: then it is one quote of the text.
        if (character === '"') {
          quoted = false
          quoteBefore = true
        } else cell += character
        continue
      }
      if (character === '"') {
        if (quoteBefore) cell += '"'
        quoted = true
      } else if (character === ',') {
        row.push(cell)
        cell = ''
      } else if (character === '\n' || character === '\r') {
        if (character === '\r' || !returnBefore) {
          yield [...row, cell]
          row = []
          cell = ''
        }
        rowChars = 0
      } else cell += character
      quoteBefore = false
      returnBefore = character === '\r'
    }
  }
  if (quoted) throw new Error('Expected every quote to be closed')
  if (cell !== '' || row.length > 0) yield [...row, cell]
}

/** A number where the cell is one as JSON writes it, so that `007` and long identifiers stay texts. */
function valueOf(cell) {
  const number = Number(cell)
  return Number.isFinite(number) && String(number) === cell ? number : cell
}

/** The rows below the first as objects. */
async function* records(rows) {
  let names
  for await (const cells of rows) {
    // An empty line is no row.
    if (cells.length === 1 && cells[0] === '') continue
    if (names === undefined) {
      names = cells.map((name, index) => name.replace(/^\uFEFF/, '').trim() || `column_${index + 1}`)
      continue
    }
    const members = cells.map((cell, index) => [names[index] ?? `column_${index + 1}`, valueOf(cell)])
    yield Object.fromEntries(members.filter(([, value]) => value !== ''))
  }
}

async function main([file, agent]) {
  const { STRANDFAST_URL: url = 'http://127.0.0.1:8787', STRANDFAST_KEY: apiKey } = process.env
  if (file === undefined || agent === undefined || apiKey === undefined) {
    console.error('Usage: STRANDFAST_KEY=… node examples/ingest-csv.mjs FILE.csv AGENT')
    return 2
  }
  const client = new ServiceClient({ url: url.split(','), apiKey })
  await client.createAgent(agent, undefined, 'governed').catch((error) => {
    if (!(error instanceof ServiceError && error.code === 'agent_exists')) throw error
  })
  const source = file === '-' ? process.stdin.setEncoding('utf8') : createReadStream(file, 'utf8')
  const summary = await client.ingestMany(agent, records(csvRows(source)))
  for (const { line, code, detail } of summary.errors) console.error(`row ${line}: ${code}: ${detail}`)
  console.log(`${summary.accepted} records written to ${agent}, ${summary.rejected} refused`)
  if (summary.accepted > 0) console.log(`seq ${summary.first_seq} to ${summary.last_seq}`)
  if (summary.chain_head !== null) console.log(`chain head ${summary.chain_head}`)
  return summary.rejected === 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2)).catch((error) => {
  console.error(error.message)
  return 1
})
