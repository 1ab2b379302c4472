/** A table with aligned columns, as the formatter writes it. */
export function table(heads, rows) {
  const all = [heads, ...rows]
  const widths = heads.map((_, column) => Math.max(3, ...all.map((row) => row[column].length)))
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(heads), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rows.map(line)].join(
    '\n',
  )
}
