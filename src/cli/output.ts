import { once } from 'node:events'
import { eastAsianWidth } from 'get-east-asian-width'
import { printable } from './printable.js'

/** How a command prints: `text` for people, or `json`, one line of JSON for each object. */
export type Format = 'text' | 'json'

/** The option of `formatOf`. */
export const formatOption = { format: { type: 'string' } } as const

/** The line of a usage about `formatOption`. */
export const FORMAT_USAGE = `Prints for people on a terminal, and lines of JSON otherwise; --format text or --format json chooses.
`

/** The format given by `--format`, or the one that suits standard output. @throws Error for another value */
export function formatOf(given: string | undefined): Format {
  if (given === undefined) return process.stdout.isTTY ? 'text' : 'json'
  if (given === 'text' || given === 'json') return given
  throw new Error('Expected --format to be text or json')
}

/** A value in a table. */
type Cell = string | number | boolean | null | undefined | readonly string[]

/** The columns of a table: their names, and the value of a row in each. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>

/** A time in a table: ISO 8601 in UTC, which options accept, too. */
export function timeCell(unixMs: number | null | undefined): string | undefined {
  return unixMs === null || unixMs === undefined ? undefined : new Date(unixMs).toISOString()
}

/** Prints a line on standard output, and waits for a slow reader. Control characters are escaped. */
export async function printLine(line: string): Promise<void> {
  if (!process.stdout.write(`${printable(line)}\n`)) await once(process.stdout, 'drain')
}

/** Spaces between two columns. */
const GAP = '  '

/**
 * A table for people whose rows are printed as they arrive; the columns become wider when necessary. Only the
 * last column is not padded, so put long values there. Lines are cut at the width of the terminal.
 */
export class Table<Row> {
  readonly #columns: Columns<Row>
  readonly #lineWidth: number
  #widths: number[] = []
  #isCut = false

  /** @param lineWidth columns of the terminal; a terminal without a size reports 0 */
  constructor(columns: Columns<Row>, lineWidth = process.stdout.columns || Infinity) {
    this.#columns = columns
    this.#lineWidth = lineWidth
  }

  /** Prints rows, and before the first ones the names of the columns. */
  async print(rows: readonly Row[]): Promise<void> {
    const cells = rows.map((row) => Object.values(this.#columns).map((valueOf) => cellText(valueOf(row))))
    const names = Object.keys(this.#columns).map((name) => name.toUpperCase())
    const lines = this.#widths.length === 0 ? [names, ...cells] : cells
    this.#widths = names
      .slice(0, -1)
      .map((_name, index) =>
        Math.max(this.#widths[index] ?? 0, ...lines.map((line) => widthOf(line[index] ?? ''))),
      )
    for (const line of lines) await printLine(this.#lineOf(line))
  }

  /** Says on standard error if values were cut, or prints `none` if no row was printed. */
  end(none: string): void {
    if (this.#widths.length === 0) process.stderr.write(`${none}\n`)
    if (this.#isCut)
      process.stderr.write('Lines are cut at the width of the terminal; --format json prints everything\n')
  }

  #lineOf(cells: readonly string[]): string {
    const padded = cells.map((text, index) => text + ' '.repeat(this.#padding(text, index)))
    const line = padded.join(GAP).trimEnd()
    const shown = cut(line, this.#lineWidth)
    this.#isCut ||= shown !== line
    return shown
  }

  #padding(text: string, index: number): number {
    const width = this.#widths[index]
    return width === undefined ? 0 : Math.max(0, width - widthOf(text))
  }
}

/** Prints an object for people: one line for each member. */
export async function printMembers(members: Readonly<Record<string, Cell>>): Promise<void> {
  const widest = Math.max(...Object.keys(members).map((name) => name.length))
  for (const [name, cell] of Object.entries(members))
    await printLine(`${name.padEnd(widest)}${GAP}${cellText(cell)}`)
}

function cellText(cell: Cell): string {
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no'
  const text = typeof cell === 'object' ? (cell ?? []).join(', ') : String(cell ?? '')
  return text === '' ? '-' : printable(text)
}

/** Characters that take no column of a terminal. */
const zeroWidth = /[\p{Mn}\p{Me}\p{Cf}]/u

function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += characterWidth(character)
  return width
}

function characterWidth(character: string): number {
  if (character < '\u0300') return 1
  if (zeroWidth.test(character)) return 0
  return eastAsianWidth(character.codePointAt(0) ?? 0)
}

/** The text, cut so that it takes at most `columns`, with … at the end if it was cut. */
function cut(text: string, columns: number): string {
  let width = 0
  let kept = 0
  for (const character of text) {
    width += characterWidth(character)
    if (width > columns) return `${text.slice(0, kept)}…`
    // The last column is for the ….
    if (width < columns) kept += character.length
  }
  return text
}
