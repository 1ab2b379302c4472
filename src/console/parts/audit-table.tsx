import { countText, lineText } from './format.js'
import { Time } from './texts.js'
import type { RecordRow } from './records/record-row.js'
import { describeEvent } from './audit-events.js'

const columns = ['Seq', 'Time', 'Event', 'User', 'Address', 'Agent', 'Outcome'] as const

/** Audit records as a table; on a narrow screen each row is a card. */
export function AuditTable(props: {
  name: string
  rows: readonly RecordRow[]
  linkTo: (seq: number) => string
}) {
  const { name, rows, linkTo } = props
  return (
    // Explicit roles, because the styles of cards would remove the implicit ones.
    <table class="rows records audit" role="table" aria-label={name}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column} role="columnheader" scope="col" class={column === 'Seq' ? 'number' : ''}>
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <Row key={row.seq} row={row} href={linkTo(row.seq)} />
        ))}
      </tbody>
    </table>
  )
}

function Row({ row, href }: { row: RecordRow; href: string }) {
  const { seq, type, ms } = row
  const { event, user, userId, address, device, outcome } = describeEvent(row)
  return (
    <tr role="row" class="record">
      <th role="rowheader" scope="row" class="number seq">
        <a class="whole" href={href} aria-label={`Record ${countText(seq)}`}>
          {countText(seq)}
        </a>
      </th>
      <td role="cell" class="time">
        <Time ms={ms} />
      </td>
      <td role="cell" class="event" title={type}>
        {event}
      </td>
      <td role="cell" class="picked" data-name="User" title={userId}>
        <code>{user}</code>
      </td>
      <td role="cell" class="picked" data-name="Address" title={address}>
        {address}
      </td>
      <td role="cell" class="picked device" data-name="Agent" title={device}>
        {lineText(device)}
      </td>
      <td role="cell" class="state">
        {outcome !== '' && <span class={`badge ${outcome}`}>{outcome}</span>}
      </td>
    </tr>
  )
}
