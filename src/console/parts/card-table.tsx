import type { ComponentChildren } from 'preact'
import { useRoving } from './roving.js'
import { ariaSort, type CountedPage, type Sort, SORTED_MAX, sortedRows, type Sorting } from './sort.js'
import { useEffect } from 'preact/hooks'
import { Choice } from './field.js'
import { countText } from './format.js'
import { Button } from './texts.js'

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

/** The heading of a column; a button if the list can be sorted by it. A second click reverses the order. */
export function SortHeading(props: {
  column: string
  sort: Sort | undefined
  set: ((sort: Sort) => void) | undefined
}) {
  const { column, sort, set } = props
  if (set === undefined) return <>{column}</>
  const isChosen = sort?.column === column
  const arrow = !isChosen ? '↕' : sort.isDescending ? '↓' : '↑'
  return (
    <>
      <button
        type="button"
        class="sort"
        title={`Sort by ${column}`}
        onClick={() => set({ column, isDescending: isChosen && !sort.isDescending })}
      >
        {column} <span aria-hidden="true">{arrow}</span>
      </button>
      <span class="sort-name">{column}</span>
    </>
  )
}

/** The same choice as a field, for a narrow page, which does not show the headings. */
function SortChoice<Row>({ sorting }: { sorting: Sorting<Row> }) {
  const { keys, sort, set } = sorting
  const options = Object.keys(keys).flatMap((column) => [
    [`+${column}`, `${column} ↑`],
    [`-${column}`, `${column} ↓`],
  ])
  const value = sort === undefined ? '' : `${sort.isDescending ? '-' : '+'}${sort.column}`
  return (
    <div class="sort-choice">
      <Choice
        name="Sort by"
        value={value}
        options={{ '': 'Not sorted', ...Object.fromEntries(options) }}
        set={(chosen) =>
          set(chosen === '' ? undefined : { column: chosen.slice(1), isDescending: chosen.startsWith('-') })
        }
      />
    </div>
  )
}

/** Says why a long list cannot be sorted by its columns, and returns it to the server's order. */
export function SortLimit<Row>(props: {
  sorting: Sorting<Row>
  page: CountedPage | undefined
  noun: string
  order: string
}) {
  const { sorting, page, noun, order } = props
  const isLong = page !== undefined && page.total > SORTED_MAX
  useEffect(() => {
    if (isLong && sorting.sort !== undefined) sorting.set(undefined)
  }, [isLong])
  if (!isLong) return null
  return (
    <p class="muted">
      Sorted by {order}. Up to {countText(SORTED_MAX)} {noun} can be sorted by other columns: narrow the list
      by its search.
    </p>
  )
}

/** Buttons to the previous and the next page; nothing if there is one page. */
export function Pages(props: {
  hasPrevious: boolean
  next: string | undefined
  goBack: () => void
  goNext: (cursor: string) => void
}) {
  const { hasPrevious, next, goBack, goNext } = props
  if (!hasPrevious && next === undefined) return null
  return (
    <nav class="pages" aria-label="Pages">
      <Button text="Previous" disabled={!hasPrevious} onClick={goBack} />
      <Button text="Next" disabled={next === undefined} onClick={() => next !== undefined && goNext(next)} />
    </nav>
  )
}

/** Page buttons for a list with cursors. */
export function CursorPages(props: {
  /** The cursors that led to this page; empty on the first page. */
  cursors: readonly string[]
  set: (cursors: readonly string[]) => void
  /** The cursor of the next page; null or undefined on the last one. */
  next: string | null | undefined
}) {
  const { cursors, set, next } = props
  return (
    <Pages
      hasPrevious={cursors.length > 0}
      next={next ?? undefined}
      goBack={() => set(cursors.slice(0, -1))}
      goNext={(to) => set([...cursors, to])}
    />
  )
}
