import { type AddressType, useAddress } from './address.js'

/** A column by which a list is sorted, and the direction. */
export interface Sort {
  column: string
  isDescending: boolean
}

/** The value by which a row is sorted; null sorts last in both directions. */
export type SortKey = string | number | null

/** The columns by which a list can be sorted, and the chosen one; undefined for the order of the rows. */
export interface Sorting<Row> {
  keys: Readonly<Record<string, (row: Row) => SortKey>>
  sort: Sort | undefined
  set: (sort: Sort | undefined) => void
}

/** The choice of a column, in the address. */
export function useSorting<Row>(keys: Sorting<Row>['keys'], first?: Sort): Sorting<Row> {
  const [sort, set] = useAddress('sort', sortType(Object.keys(keys), first))
  return { keys, sort, set }
}

/** A column by which a list is sorted, with a `-` before it if descending. */
export function sortType(columns: readonly string[], usual: Sort | undefined): AddressType<Sort | undefined> {
  const textOf = (sort: Sort | undefined): string =>
    sort === undefined ? 'none' : `${sort.isDescending ? '-' : ''}${sort.column}`
  return {
    read([text = textOf(usual)]) {
      const column = text.replace(/^-/, '')
      return columns.includes(column) ? { column, isDescending: text.startsWith('-') } : undefined
    },
    write: (sort) => (textOf(sort) === textOf(usual) ? [] : [textOf(sort)]),
    isStep: false,
  }
}

const texts = new Intl.Collator('en', { numeric: true })

/** The rows sorted by the chosen column. */
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

/** The longest list that is read as a whole to be sorted; longer lists keep the server's order. */
export const SORTED_MAX = 1_000

/** A page of a list, with the number of rows of the whole list. */
export interface CountedPage {
  total: number
  next_cursor: string | null
}

/** Undefined if the list is too long to be read as a whole. */
export function sortable<Row>(sorting: Sorting<Row>, { total }: CountedPage): Sorting<Row> | undefined {
  return total > SORTED_MAX ? undefined : sorting
}

/** Reads a list as one page; the server can end a page early. */
export async function wholeList<Page extends CountedPage>(
  read: (cursor: string | undefined) => Promise<Page>,
  join: (pages: Page, next: Page) => Page,
): Promise<Page> {
  let pages = await read(undefined)
  while (pages.next_cursor !== null && pages.total <= SORTED_MAX)
    pages = join(pages, await read(pages.next_cursor))
  return pages
}
