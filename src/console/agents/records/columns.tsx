import { useState } from 'preact/hooks'
import { fieldPathDetail, fieldSteps, pathOfMember } from '../../../strand/field-path.js'
import { tabStore } from '../../storage.js'
import type { RecordRow } from '../../parts/records/record-row.js'
import { valueOfJson } from '../../parts/json.js'
import { Problem } from '../../parts/field.js'
import { columnName } from '../../parts/records/record-table.js'

const FIELDS_MAX = 40

/** The column paths chosen for an agent in this tab. */
export function chosenColumns(agent: string): string[] {
  const stored = valueOfJson(tabStore.read(`columns.${agent}`))
  return Array.isArray(stored) ? stored.filter((path): path is string => typeof path === 'string') : []
}

/** Chooses fields of bodies as columns: members of the visible bodies, or any path. */
export function ColumnPicker(props: {
  agent: string
  rows: readonly RecordRow[]
  columns: string[]
  set: (columns: string[]) => void
}) {
  const { agent, rows, columns, set } = props
  const found = new Set(columns)
  for (const { members } of rows) for (const name of Object.keys(members)) found.add(pathOfMember(name))
  const paths = [...found].slice(0, FIELDS_MAX)
  const choose = (next: string[]): void => {
    tabStore.write(`columns.${agent}`, next.length === 0 ? undefined : JSON.stringify(next))
    set(next)
  }
  const toggle = (path: string): void =>
    choose(columns.includes(path) ? columns.filter((one) => one !== path) : [...columns, path])
  return (
    <details class="picker">
      <summary>Columns{columns.length > 0 ? ` (${columns.length})` : ''}</summary>
      <div class="picker-inside">
        {paths.length === 0 && <p class="muted">The bodies on this page have no fields.</p>}
        {paths.map((path) => (
          <button key={path} type="button" aria-pressed={columns.includes(path)} onClick={() => toggle(path)}>
            {columnName(path)}
          </button>
        ))}
        <AnyColumn add={(path) => !columns.includes(path) && choose([...columns, path])} />
      </div>
    </details>
  )
}

/** A field that adds a column by its path. */
function AnyColumn({ add }: { add: (path: string) => void }) {
  const [path, setPath] = useState('')
  const [fault, setFault] = useState<string | undefined>(undefined)
  return (
    <form
      class="tools"
      onSubmit={(event) => {
        event.preventDefault()
        const isPath = fieldSteps(path.trim()) !== undefined
        setFault(isPath ? undefined : fieldPathDetail)
        if (!isPath) return
        add(path.trim())
        setPath('')
      }}
    >
      <input
        aria-label="Path of a column"
        placeholder="door.name or /door/name"
        autocomplete="off"
        spellcheck={false}
        value={path}
        onInput={(event) => setPath(event.currentTarget.value)}
      />
      <button type="submit">Add</button>
      <Problem text={fault} />
    </form>
  )
}
