import { useEffect, useState } from 'preact/hooks'
import { Choice } from './field.js'
import { countText } from './format.js'

/** A column by which a list is sorted, and the direction. */
export interface Sort {
  column: string
  isDescending: boolean
}

/** What a row is sorted by; null sorts last in both directions. */
export type SortKey = string | number | null

/** The columns by which a list can be sorted, and the chosen one; undefined for the order of the rows. */
export interface Sorting<Row> {
  keys: Readonly<Record<string, (row: Row) => SortKey>>
  sort: Sort | undefined
  set: (sort: Sort | undefined) => void
}

/** Sorts the whole of a list by a chosen column. */
export function useSorting<Row>(keys: Sorting<Row>['keys'], first?: Sort): Sorting<Row> {
  const [sort, set] = useState(first)
  return { keys, sort, set }
}

/** The most rows that a page reads to sort a list; longer lists keep the server's order. */
export const SORTED_MAX = 1_000

/** One page of a list that the server counts. */
interface CountedPage {
  total: number
  next_cursor: string | null
}

/** Undefined if a list is too long to be read as a whole, so that its columns cannot be sorted. */
export function sortable<Row>(sorting: Sorting<Row>, { total }: CountedPage): Sorting<Row> | undefined {
  return total > SORTED_MAX ? undefined : sorting
}

/** Reads a list that can be sorted as one page; the server may end a page early. */
export async function wholeList<Page extends CountedPage>(
  read: (cursor: string | undefined) => Promise<Page>,
  join: (pages: Page, next: Page) => Page,
): Promise<Page> {
  let pages = await read(undefined)
  while (pages.next_cursor !== null && pages.total <= SORTED_MAX)
    pages = join(pages, await read(pages.next_cursor))
  return pages
}

/** Says why the columns of a long list cannot be sorted, and returns it to the server's order. */
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
      Sorted by {order}. Lists of up to {countText(SORTED_MAX)} {noun} can be sorted by the other columns:
      narrow this one by its search.
    </p>
  )
}

const texts = new Intl.Collator('en', { numeric: true })

/** The rows by the chosen column. */
export function sortedRows<Row>(rows: readonly Row[], sorting: Sorting<Row> | undefined): readonly Row[] {
  const { column, isDescending = false } = sorting?.sort ?? {}
  const keyOf = column === undefined ? undefined : sorting?.keys[column]
  if (keyOf === undefined) return rows
  const sign = isDescending ? -1 : 1
  return rows
    .map((row) => ({ row, key: keyOf(row) }))
    .sort((one, other) => compared(one.key, other.key, sign))
    .map(({ row }) => row)
}

function compared(one: SortKey, other: SortKey, sign: 1 | -1): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null)
  if (typeof one === 'number' && typeof other === 'number') return sign * (one - other)
  return sign * texts.compare(String(one), String(other))
}

/** The `aria-sort` of a column's heading. */
export function ariaSort(sort: Sort | undefined, column: string): 'ascending' | 'descending' | undefined {
  if (sort?.column !== column) return undefined
  return sort.isDescending ? 'descending' : 'ascending'
}

/** The heading of a column: a button if the list can be sorted by it. Pressed again, it turns the order round. */
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
    <button
      type="button"
      class="sort"
      title={`Sort by ${column}`}
      onClick={() => set({ column, isDescending: isChosen && !sort.isDescending })}
    >
      {column} <span aria-hidden="true">{arrow}</span>
    </button>
  )
}

/** A field with the same choice, for a narrow page, where the headings are not shown. */
export function SortChoice<Row>({ sorting }: { sorting: Sorting<Row> }) {
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
