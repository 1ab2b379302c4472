import type { ComponentChildren } from 'preact'

/** The name of a column, and what it shows of a row. */
export type Column<Row> = readonly [name: string, of: (row: Row) => ComponentChildren]

/** A table of people's things; on a narrow screen each row is a card, and each cell says what it is. */
export function CardTable<Row>(props: {
  /** Of the table, for screen readers. */
  name: string
  class?: string
  rows: readonly Row[]
  keyOf: (row: Row) => string | number
  /** What a row is about. */
  head: Column<Row>
  cells: Readonly<Record<string, (row: Row) => ComponentChildren>>
  /** Columns of numbers, which stand at the right. */
  numbers?: readonly string[]
  /** What can be done with a row; the name of its column is for screen readers alone. */
  action?: Column<Row>
}) {
  const { name, rows, keyOf, head, cells, numbers = [], action } = props
  const look = (column: string): string => (numbers.includes(column) ? 'number' : '')
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      {/* The roles stay where the style makes cards of the rows. */}
      <table class={`rows cards ${props.class ?? ''}`} role="table" aria-label={name}>
        <thead role="rowgroup">
          <tr role="row">
            {[head[0], ...Object.keys(cells)].map((column) => (
              <th key={column} role="columnheader" scope="col" class={look(column)}>
                {column}
              </th>
            ))}
            {action && (
              <th role="columnheader" scope="col">
                <span class="hidden">{action[0]}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              <th role="rowheader" scope="row">
                {head[1](row)}
              </th>
              {Object.entries(cells).map(([column, of]) => (
                <td key={column} role="cell" data-name={column} class={look(column)}>
                  {of(row)}
                </td>
              ))}
              {action && <td role="cell">{action[1](row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
