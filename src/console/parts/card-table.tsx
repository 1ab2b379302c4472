import type { ComponentChildren } from 'preact'

/** A column: its name; one of numbers, which stand at the right; or one whose name is for screen readers alone. */
export type Column = string | { name: string; look: 'number' | 'hidden' }

/** A table of people's things; on a narrow screen each row is a card, and each cell says what it is. */
export function CardTable(props: {
  /** Of the table, for screen readers. */
  name: string
  columns: readonly Column[]
  class?: string
  children: ComponentChildren
}) {
  const { name, columns, children } = props
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      {/* The roles stay where the style makes cards of the rows. */}
      <table class={`rows cards ${props.class ?? ''}`} role="table" aria-label={name}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <Head key={nameOf(column)} column={column} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">{children}</tbody>
      </table>
    </div>
  )
}

function Head({ column }: { column: Column }) {
  const look = typeof column === 'string' ? undefined : column.look
  return (
    <th role="columnheader" scope="col" class={look === 'number' ? 'number' : ''}>
      {look === 'hidden' ? <span class="hidden">{nameOf(column)}</span> : nameOf(column)}
    </th>
  )
}

function nameOf(column: Column): string {
  return typeof column === 'string' ? column : column.name
}

/** A row: what it is about, and its cells. */
export function CardRow({ head, children }: { head: ComponentChildren; children: ComponentChildren }) {
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        {head}
      </th>
      {children}
    </tr>
  )
}

/** A cell under the column of that name. */
export function CardCell(props: { name: string; isNumber?: boolean; children: ComponentChildren }) {
  return (
    <td role="cell" data-name={props.name} class={props.isNumber === true ? 'number' : ''}>
      {props.children}
    </td>
  )
}
