import { lineText } from './format.js'
import type { RecordRow } from './records/record-row.js'
import { ColumnHeading, RecordCards, SeqAndTime } from './records/record-table.js'
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
    <RecordCards
      class="records audit"
      name={name}
      headings={columns.map((column) => (
        <ColumnHeading key={column} text={column} class={column === 'Seq' ? 'number' : ''} />
      ))}
    >
      {rows.map((row) => (
        <Row key={row.seq} row={row} href={linkTo(row.seq)} {...shown} />
      ))}
    </RecordCards>
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
  const { event, about, principal, user, userId, hmac, address, device, outcome } = describeEvent(row)
  return (
    <tr role="row" class="record">
      <SeqAndTime href={href} row={row} />
      <td role="cell" class="event" title={row.type}>
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
