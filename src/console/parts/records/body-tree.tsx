import { useState } from 'preact/hooks'
import { countText, lineText } from '../format.js'
import { Button } from '../texts.js'

const NODES_SHOWN = 2_000
const OPEN_LEVELS = 3

interface Node {
  name: string | undefined
  value: unknown
  level: number
}

/** A body as a collapsible tree. It shows 2,000 nodes, and more on demand. */
export function BodyTree({ value }: { value: unknown }) {
  const [limit, setLimit] = useState(NODES_SHOWN)
  const budget = { left: limit, cut: false }
  const tree = branch({ name: undefined, value, level: 0 }, budget)
  return (
    <div class="tree">
      <ul>{tree}</ul>
      {budget.cut && <Button text="Show 2,000 more" onClick={() => setLimit(limit + NODES_SHOWN)} />}
    </div>
  )
}

function branch({ name, value, level }: Node, budget: { left: number; cut: boolean }) {
  if (budget.left === 0) {
    budget.cut = true
    return null
  }
  budget.left -= 1
  const label = name !== undefined && (
    <span class="member">
      <bdi>{lineText(name)}</bdi>:{' '}
    </span>
  )
  if (typeof value !== 'object' || value === null) {
    return (
      <li key={name}>
        {label}
        {typeof value === 'string' && value !== lineText(value) ? (
          <LongText text={value} />
        ) : (
          <code class={value === null ? 'null' : typeof value}>{jsonText(value)}</code>
        )}
      </li>
    )
  }
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  const size = isList ? `[${entries.length}]` : `{${entries.length}}`
  return (
    <li key={name}>
      <details open={level < OPEN_LEVELS}>
        <summary>
          {label}
          <span class="muted">{size}</span>
        </summary>
        <ul>
          {entries.map(([key, inner]) => branch({ name: key, value: inner, level: level + 1 }, budget))}
        </ul>
      </details>
    </li>
  )
}

function jsonText(value: unknown): string {
  return JSON.stringify(value)
}

/** A text longer than a line, of which at first only the beginning is shown. */
function LongText({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false)
  return (
    <>
      <code class="string">{jsonText(isWhole ? text : lineText(text))}</code>{' '}
      <button type="button" class="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
        {isWhole ? 'Show less' : `Show all ${countText(text.length)} characters`}
      </button>
    </>
  )
}
