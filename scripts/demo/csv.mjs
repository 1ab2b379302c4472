const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy

/**
 * Parses the rows of a CSV text (RFC 4180) by the names in its first line.
 * @param {string} text
 * @param {readonly string[]} numeric columns of numbers, in which an empty cell is null
 * @returns {Generator<Record<string, string | number | null>>}
 */
export function* csvRows(text, numeric) {
  const lines = csvLines(text)
  const names = lines.next().value ?? []
  for (const cells of lines) {
    if (cells.length !== names.length) throw new Error(`Expected ${names.length} cells, got ${cells.length}`)
    yield Object.fromEntries(names.map((name, at) => [name, cellValue(cells[at], numeric.includes(name))]))
  }
}

/** @returns {Generator<string[], void, void>} */
function* csvLines(text) {
  let cells = []
  CELL.lastIndex = 0
  while (CELL.lastIndex < text.length) {
    const from = CELL.lastIndex
    const match = CELL.exec(text)
    if (match === null) throw new Error(`Expected a cell at character ${from}`)
    const [, quoted, plain, end] = match
    cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    yield cells
    cells = []
  }
}

function cellValue(cell, isNumber) {
  if (!isNumber) return cell
  const value = Number(cell)
  return cell === '' || Number.isNaN(value) ? null : value
}
