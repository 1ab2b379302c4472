import { countText, lineText } from './format.js'
import { Time } from './texts.js'
import type { RecordRow } from './records/record-row.js'
import { describeEvent, organismOf } from './audit-events.js'
import { KeyLink, type KeyNames, Principal, useKeyNames, UserLink } from './principal.js'
import type { SignedIn, WhoAmI } from './session.js'

const columns = ['Seq', 'Time', 'Event', 'User', 'IP address', 'Device', 'Outcome'] as const

/** Audit records of an agent as a table; on a narrow screen each row is a card. */
export function AuditTable(props: {
  session: SignedIn
  agent: string
  name: string
  rows: readonly RecordRow[]
  linkTo: (seq: number) => string
}) {
  const { session, agent, name, rows, linkTo } = props
  const shown = { who: session.who, names: useKeyNames(session), organism: organismOf(agent) }
  return (
    <div class="scroll">
      {/* Explicit roles, because the styles of cards would remove the implicit ones. */}
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
            <Row key={row.seq} row={row} href={linkTo(row.seq)} {...shown} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface RowProps {
  row: RecordRow
  href: string
  who: WhoAmI
  names: KeyNames
  organism: string | undefined
}

function Row({ row, href, who, names, organism }: RowProps) {
  const { seq, type, ms } = row
  const { event, about, principal, user, userId, hmac, address, device, outcome } = describeEvent(row)
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
        {about !== '' && <> {names.has(about) ? <KeyLink id={about} names={names} /> : about}</>}
      </td>
      <td role="cell" class="cut picked" data-name="User" title={hmac}>
        {principal !== '' ? (
          <Principal id={principal} names={names} who={who} />
        ) : userId !== '' ? (
          <UserLink id={userId} organism={organism} who={who} />
        ) : (
          <code>{user}</code>
        )}
      </td>
      <td role="cell" class="cut picked" data-name="IP address" title={address}>
        {address}
      </td>
      <td role="cell" class="cut picked device" data-name="Device" title={device}>
        {lineText(device)}
      </td>
      <td role="cell" class="state">
        {outcome !== '' && <span class={`badge ${outcome}`}>{outcome}</span>}
      </td>
    </tr>
  )
}
