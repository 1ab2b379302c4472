import { type ComponentChildren, Fragment } from 'preact'
import { Prose } from './code.js'
import type { Schema } from './document.js'
import type { MemberRow, Note, SchemaReader, SchemaRow } from './schema.js'

/** A schema as a table; a schema without members as a line. */
export function SchemaTable({ schema, reader }: { schema: Schema; reader: SchemaReader }) {
  const rows = reader.rows(schema)
  if (rows.length > 0) return <RowsTable heading="Member" rows={rows} />
  const description = reader.descriptionOf(schema)
  return (
    <p class="muted">
      {reader.typeText(schema)}
      {description !== undefined && (
        <>
          {' – '}
          <Prose text={description} />
        </>
      )}
    </p>
  )
}

/** A table of members or parameters. */
export function RowsTable({ heading, rows }: { heading: string; rows: readonly SchemaRow[] }) {
  return (
    <PlainTable heads={[heading, 'Type', 'Meaning']}>
      {rows.map((row, index) =>
        row.kind === 'either' ? (
          <tr key={index} class="either" style={{ '--depth': String(row.depth) }}>
            <td colSpan={3}>
              <div>{row.text}</div>
            </td>
          </tr>
        ) : (
          <Member key={index} row={row} />
        ),
      )}
    </PlainTable>
  )
}

export function PlainTable({ heads, children }: { heads: readonly string[]; children: ComponentChildren }) {
  return (
    <table>
      <thead>
        <tr>
          {heads.map((text) => (
            <th key={text} scope="col">
              {text}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}

function Member({ row: { name, typeText, words, notes, mark, depth } }: { row: MemberRow }) {
  return (
    <tr style={{ '--depth': String(depth) }}>
      <td class="member">
        <div>
          <code>{name}</code>
          {mark !== undefined && <span class={mark === 'required' ? 'needed' : 'optional'}>{mark}</span>}
        </div>
      </td>
      <td class="kind">{typeText}</td>
      <td class="words">
        {words !== undefined && (
          <div>
            <Prose text={words} />
          </div>
        )}
        {notes.length > 0 && (
          <div class="notes">
            {notes.map((note) => (
              <NoteText key={note.text} note={note} />
            ))}
          </div>
        )}
      </td>
    </tr>
  )
}

function NoteText({ note: { text, codes } }: { note: Note }) {
  return (
    <span>
      {text}
      {codes.map((code, index) => (
        <Fragment key={code}>
          {index === 0 ? ' ' : ', '}
          <code>{code}</code>
        </Fragment>
      ))}
    </span>
  )
}
