import { passing } from '../storage.js'
import type { RecordRow } from './record-row.js'

const FIELDS_MAX = 40

/** The columns that were chosen for an agent in this tab. */
export function chosenColumns(agent: string): string[] {
  const kept = passing.read(`columns.${agent}`)
  const parsed: unknown = kept === undefined ? [] : JSON.parse(kept)
  return Array.isArray(parsed) ? parsed.filter((name): name is string => typeof name === 'string') : []
}

/** Makes columns of fields of the bodies that are shown. */
export function ColumnPicker(props: {
  agent: string
  rows: readonly RecordRow[]
  columns: string[]
  set: (columns: string[]) => void
}) {
  const { agent, rows, columns, set } = props
  const found = new Set(columns)
  for (const { members } of rows) for (const name of Object.keys(members)) found.add(name)
  const names = [...found].slice(0, FIELDS_MAX)
  const toggle = (name: string): void => {
    const next = columns.includes(name) ? columns.filter((one) => one !== name) : [...columns, name]
    passing.write(`columns.${agent}`, next.length === 0 ? undefined : JSON.stringify(next))
    set(next)
  }
  return (
    <details class="picker">
      <summary>Columns{columns.length > 0 ? ` (${columns.length})` : ''}</summary>
      <div class="picker-inside">
        {names.length === 0 && <p class="muted">The bodies on this page have no fields.</p>}
        {names.map((name) => (
          <button key={name} type="button" aria-pressed={columns.includes(name)} onClick={() => toggle(name)}>
            {name}
          </button>
        ))}
      </div>
    </details>
  )
}
