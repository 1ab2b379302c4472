import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { fieldPathDetail, fieldSteps, pathOfSteps } from '../../../strand/field-path.js'
import { tabStore } from '../../storage.js'
import type { RecordRow } from '../../parts/records/record-row.js'
import { isObject, valueOfJson } from '../../parts/json.js'
import { Form, Problem, TextInput } from '../../parts/field.js'
import { columnName } from '../../parts/records/record-table.js'
import { Button } from '../../parts/texts.js'

const FIELDS_MAX = 40
/** The levels of a body whose fields are offered: its members, and theirs. */
const LEVELS_MAX = 3

/** The column paths chosen last for an agent in this tab. */
export function chosenColumns(agent: string): string[] {
  const stored = valueOfJson(tabStore.read(`columns.${agent}`))
  return Array.isArray(stored) ? stored.filter((path): path is string => typeof path === 'string') : []
}

/** Stores the column paths of an agent in this tab. */
export function storeColumns(agent: string, columns: readonly string[]): void {
  tabStore.write(`columns.${agent}`, columns.length === 0 ? undefined : JSON.stringify(columns))
}

/** Chooses fields of bodies as columns: fields of the visible bodies, or any path. */
export function ColumnPicker(props: {
  rows: readonly RecordRow[]
  columns: readonly string[]
  set: (columns: string[]) => void
}) {
  const { rows, columns, set } = props
  const details = useDismissed()
  // A path keeps its position, so that no button moves under the pointer.
  const offered = useRef<string[]>([])
  const left = Math.max(0, FIELDS_MAX - offered.current.length)
  const paths = useMemo(() => fieldPaths(rows), [rows])
  const found = paths.filter((path) => !offered.current.includes(path))
  offered.current = [...new Set([...offered.current, ...found.slice(0, left), ...columns])]
  const toggle = (path: string): void =>
    set(columns.includes(path) ? columns.filter((one) => one !== path) : [...columns, path])
  return (
    <details class="picker" ref={details}>
      <summary>Columns{columns.length > 0 ? ` (${columns.length})` : ''}</summary>
      <div class="picker-inside">
        {offered.current.length === 0 && <p class="muted">The bodies on this page have no fields.</p>}
        {offered.current.map((path) => (
          <button key={path} type="button" aria-pressed={columns.includes(path)} onClick={() => toggle(path)}>
            {columnName(path)}
          </button>
        ))}
        <AnyColumn add={(path) => !columns.includes(path) && set([...columns, path])} />
      </div>
    </details>
  )
}

/** The paths of the fields of bodies: first the members, then the fields of nested objects. */
function fieldPaths(rows: readonly RecordRow[]): string[] {
  const paths = new Set<string>()
  let level: { steps: string[]; members: object }[] = rows.map(({ members }) => ({ steps: [], members }))
  for (let depth = 0; depth < LEVELS_MAX && paths.size < FIELDS_MAX; depth += 1) {
    const fields = level.flatMap(({ steps, members }) =>
      Object.entries(members).map(([name, value]) => ({ steps: [...steps, name], value })),
    )
    for (const { steps } of fields) paths.add(pathOfSteps(steps))
    level = fields.flatMap(({ steps, value }) => (isObject(value) ? [{ steps, members: value }] : []))
  }
  return [...paths]
}

/** A `details` element that closes by Escape, and by a press or a focus outside of it. */
function useDismissed() {
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const { current: element } = details
    if (element === null) return undefined
    const onOutside = ({ target }: Event): void => {
      if (!(target instanceof Node && element.contains(target))) element.open = false
    }
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || !element.open) return
      element.open = false
      element.querySelector('summary')?.focus()
    }
    document.addEventListener('pointerdown', onOutside)
    document.addEventListener('focusin', onOutside)
    document.addEventListener('keydown', onKeyDown)
    return () => {
      document.removeEventListener('pointerdown', onOutside)
      document.removeEventListener('focusin', onOutside)
      document.removeEventListener('keydown', onKeyDown)
    }
  }, [])
  return details
}

function AnyColumn({ add }: { add: (path: string) => void }) {
  const [path, setPath] = useState('')
  const [fault, setFault] = useState<string | undefined>(undefined)
  return (
    <Form
      class="tools"
      submit={() => {
        const isPath = fieldSteps(path.trim()) !== undefined
        setFault(isPath ? undefined : fieldPathDetail)
        if (!isPath) return
        add(path.trim())
        setPath('')
      }}
    >
      <TextInput
        aria-label="Path of a column"
        placeholder="door.name or /door/name"
        value={path}
        set={setPath}
      />
      <Button text="Add" type="submit" />
      <Problem text={fault} />
    </Form>
  )
}
