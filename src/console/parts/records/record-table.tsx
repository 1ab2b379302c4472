import type { ComponentChildren } from 'preact'
import { fieldOf, storedSteps } from '../../../strand/field-path.js'
import { countText, lineText } from '../format.js'
import { SortHeading } from '../card-table.js'
import { ariaSort } from '../sort.js'
import { Time } from '../texts.js'
import { agentLink } from '../../route.js'
import type { RecordOrder, RecordRow } from './record-row.js'

/** The heading of a column: the name of a top-level member, or the path to a nested field. */
export function columnName(path: string): string {
  const [name = path, ...further] = storedSteps(path)
  return further.length === 0 ? name : path
}

/** Records as a table; on a narrow screen each row is a card with its body. */
export function RecordTable(props: {
  agent: string
  rows: readonly RecordRow[]
  columns: readonly string[]
  /** How many of the first records of the strand were imported. */
  imported?: number
  /** The address of a record; by default that of the agent's screen. */
  linkTo?: (seq: number) => string
  order?: RecordOrder
  /** Turns the order round; absent if the order is fixed. */
  setOrder?: (order: RecordOrder) => void
}) {
  const { agent, rows, columns, linkTo = (seq) => agentLink(agent, seq), order = 'desc', setOrder } = props
  const { imported = 0 } = props
  const sort = { column: 'Seq', isDescending: order === 'desc' }
  return (
    <RecordCards
      class="records"
      name={`Records of ${agent}`}
      headings={
        <>
          <th role="columnheader" scope="col" class="number" aria-sort={setOrder && ariaSort(sort, 'Seq')}>
            <SortHeading
              column="Seq"
              sort={sort}
              set={setOrder && (({ isDescending }) => setOrder(isDescending ? 'desc' : 'asc'))}
            />
          </th>
          <ColumnHeading text="Time" />
          <ColumnHeading text="Type" />
          {columns.map((path) => (
            <ColumnHeading
              key={path}
              text={columnName(path)}
              class={hasNumbers(rows, path) ? 'number' : ''}
            />
          ))}
          <ColumnHeading text="Body" class="cut body" />
          <ColumnHeading text="State" />
        </>
      }
    >
      {rows.map((row) => (
        <Row
          key={row.seq}
          href={linkTo(row.seq)}
          row={row}
          columns={columns}
          isImported={row.seq < imported}
        />
      ))}
    </RecordCards>
  )
}

/** A table of records with its headings; on a narrow page each row is a card. */
export function RecordCards(props: {
  class: string
  /** Names the table for screen readers. */
  name: string
  headings: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <div class="scroll">
      {/* Explicit roles, because the styles of cards would remove the implicit ones. */}
      <table class={`rows ${props.class}`} role="table" aria-label={props.name}>
        <thead role="rowgroup">
          <tr role="row">{props.headings}</tr>
        </thead>
        <tbody role="rowgroup">{props.children}</tbody>
      </table>
    </div>
  )
}

export function ColumnHeading(props: { text: string; class?: string }) {
  return (
    <th role="columnheader" scope="col" class={props.class}>
      {props.text}
    </th>
  )
}

/** The cells of every row: the seq, with the link that covers the row, and the time. */
export function SeqAndTime({ href, row: { seq, ms } }: { href: string; row: RecordRow }) {
  return (
    <>
      <th role="rowheader" scope="row" class="number seq">
        <a class="whole" href={href} aria-label={`Record ${countText(seq)}`}>
          {countText(seq)}
        </a>
      </th>
      <td role="cell" class="time">
        <Time ms={ms} />
      </td>
    </>
  )
}

/** Whether a column has numbers, which are aligned right together with its heading. */
function hasNumbers(rows: readonly RecordRow[], path: string): boolean {
  return rows.some(({ members }) => typeof fieldOf(members, path) === 'number')
}

function Row(props: { href: string; row: RecordRow; columns: readonly string[]; isImported: boolean }) {
  const { href, row, columns, isImported } = props
  const { type, body, members, state } = row
  return (
    <tr role="row" class={`record ${state}`}>
      <SeqAndTime href={href} row={row} />
      <td role="cell" class="cut type">
        <code>{type}</code>
      </td>
      {columns.map((path) => (
        <Picked key={path} path={path} value={fieldOf(members, path)} />
      ))}
      <td role="cell" class="cut body">
        {body === undefined ? <em class="muted">{missingText[state]}</em> : <code>{lineText(body)}</code>}
      </td>
      <td role="cell" class="state">
        <StateText row={row} isImported={isImported} />
      </td>
    </tr>
  )
}

const missingText: Record<RecordRow['state'], string> = {
  active: '',
  deleted: 'No body',
  erased: 'Body permanently erased',
  withheld: 'Body withheld from this user',
}

export function StateText(props: { row: Pick<RecordRow, 'state' | 'sealedBy'>; isImported: boolean }) {
  const {
    row: { state, sealedBy },
    isImported,
  } = props
  return (
    <>
      {isImported && (
        <span class="badge" title="Another server wrote this record, and it was imported here">
          imported
        </span>
      )}
      {state !== 'active' && <span class={`badge ${state}`}>{state}</span>}
      {sealedBy !== undefined && (
        <span class="badge" title={`The signature of record ${sealedBy} covers this record`}>
          sealed by {countText(sealedBy)}
        </span>
      )}
    </>
  )
}

function Picked({ path, value }: { path: string; value: unknown }) {
  return (
    <td
      role="cell"
      class={typeof value === 'number' ? 'number cut picked' : 'cut picked'}
      data-name={columnName(path)}
    >
      {shown(value)}
    </td>
  )
}

function shown(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? lineText(value) : lineText(JSON.stringify(value))
}
