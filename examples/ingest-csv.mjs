/**
 * Streams a CSV file into an agent: one record per row; the first row contains the names of the members.
 *
 *     STRANDFAST_KEY=… node examples/ingest-csv.mjs readings.csv sensors
 *     … | STRANDFAST_KEY=… node examples/ingest-csv.mjs - sensors
 *
 * STRANDFAST_URL is the address of the service (default http://127.0.0.1:8787), or the addresses of the nodes
 * of a cluster, separated by commas. The agent is created if it does not exist. Memory does not grow with the
 * file. Cells that are JSON numbers become numbers; empty cells are left out.
 * Exit codes: 0 all rows were written, 1 some rows were refused (and are listed), 2 wrong usage.
 */
import { createReadStream } from 'node:fs'
import { ServiceClient, ServiceError } from 'strandfast/client'

/** Maximum length of a row: an unclosed quote must not fill memory. */
const ROW_CHARS_MAX = 1_048_576

/**
 * Splits a CSV text (RFC 4180) that arrives in pieces into rows, with quotes, doubled quotes and line breaks
 * within quotes.
 */
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
        // A quote ends the quoted text, unless a second one follows: two quotes are one quote of the text.
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

/**
 * The number in a cell if JSON writes it in the same way, otherwise the text: `007` and long identifiers stay
 * texts.
 */
function valueOf(cell) {
  const number = Number(cell)
  return Number.isFinite(number) && String(number) === cell ? number : cell
}

/** The rows after the first one, as objects. */
async function* records(rows) {
  let names
  for await (const cells of rows) {
    // An empty line is not a row.
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
  console.log(`Wrote ${summary.accepted} records to ${agent}, refused ${summary.rejected}`)
  if (summary.accepted > 0) console.log(`seq ${summary.first_seq} to ${summary.last_seq}`)
  if (summary.chain_head !== null) console.log(`chain head ${summary.chain_head}`)
  return summary.rejected === 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2)).catch((error) => {
  console.error(error.message)
  return 1
})
