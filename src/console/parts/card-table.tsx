import type { ComponentChildren } from 'preact'
import { useRoving } from './roving.js'
import { SortChoice, SortHeading } from './sort-heading.js'
import { ariaSort, sortedRows, type Sorting } from './sort.js'

/** The name of a column, and the function that renders its cell. */
export type Column<Row> = readonly [name: string, of: (row: Row) => ComponentChildren]

interface CardTableProps<Row> {
  /** Names the table for screen readers. */
  name: string
  class?: string
  rows: readonly Row[]
  keyOf: (row: Row) => string | number
  head: Column<Row>
  cells: Readonly<Record<string, (row: Row) => ComponentChildren>>
  /** The names of numeric columns, which are aligned right. */
  numbers?: readonly string[]
  /** The names of columns with texts of any length, which share the remaining width. */
  long?: readonly string[]
  /** A column of buttons; only screen readers see its name. */
  action?: Column<Row>
  /** The columns by which the rows can be sorted, if they are the whole list. */
  sorting?: Sorting<Row> | undefined
}

/** A table whose rows become cards on a narrow screen, where each cell shows the name of its column. */
export function CardTable<Row>(props: CardTableProps<Row>) {
  const { name, keyOf, head, cells, numbers = [], long = [], action, sorting } = props
  const rows = sortedRows(props.rows, sorting)
  const classOf = (column: string): string =>
    numbers.includes(column) ? 'number' : long.includes(column) ? 'cut' : ''
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      {sorting && <SortChoice sorting={sorting} />}
      {/* Explicit roles, because the styles of cards would remove the implicit ones. */}
      <table
        class={`rows cards ${props.class ?? ''}`}
        style={{ '--long': String(long.length) }}
        role="table"
        aria-label={name}
      >
        <Headings {...props} classOf={classOf} />
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              <th role="rowheader" scope="row" class={classOf(head[0])}>
                {head[1](row)}
              </th>
              {Object.entries(cells).map(([column, of]) => (
                <td key={column} role="cell" data-name={column} class={classOf(column)}>
                  {of(row)}
                </td>
              ))}
              {action && (
                <td role="cell" class="action">
                  {action[1](row)}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Headings<Row>(props: CardTableProps<Row> & { classOf: (column: string) => string }) {
  const { head, cells, action, sorting, classOf } = props
  const headings = useRoving<HTMLTableRowElement>()
  return (
    <thead role="rowgroup">
      <tr ref={headings} role="row">
        {[head[0], ...Object.keys(cells)].map((column) => (
          <th
            key={column}
            role="columnheader"
            scope="col"
            class={classOf(column)}
            aria-sort={ariaSort(sorting?.sort, column)}
          >
            <SortHeading
              column={column}
              sort={sorting?.sort}
              set={sorting?.keys[column] === undefined ? undefined : sorting.set}
            />
          </th>
        ))}
        {action && (
          <th role="columnheader" scope="col" class="action">
            <span class="hidden">{action[0]}</span>
          </th>
        )}
      </tr>
    </thead>
  )
}
