import { useEffect } from 'preact/hooks'
import { Choice } from './field.js'
import { countText } from './format.js'
import { type CountedPage, type Sort, SORTED_MAX, type Sorting } from './sort.js'

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
