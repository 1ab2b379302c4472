import { signal, useComputed } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Operation, OperationGroup } from './document.js'
import { matchesSearch, isSearching } from './context.js'

/** The id of the visible section. */
const reading = signal('')

const starts = [
  ['start', 'Introduction'],
  ['authentication', 'Credentials'],
  ['errors', 'Errors'],
] as const

export function Contents(props: { groups: readonly OperationGroup[]; isOpen: boolean; close: () => void }) {
  const { groups, isOpen, close } = props
  const nav = useRef<HTMLElement>(null)
  useEffect(() => (groups.length === 0 ? undefined : watchReading(nav.current)), [groups])
  return (
    <nav
      ref={nav}
      id="navigation"
      class={isOpen ? 'navigation open' : 'navigation'}
      aria-label="Operations"
      onClick={(event) => {
        if (event.target instanceof Element && event.target.closest('a') !== null) close()
      }}
    >
      <section hidden={isSearching}>
        <h2>Start</h2>
        <ul>
          {starts.map(([id, name]) => (
            <li key={id}>
              <Entry id={id}>{name}</Entry>
            </li>
          ))}
        </ul>
      </section>
      {groups.map((group) => (
        <GroupContents key={group.name} group={group} />
      ))}
    </nav>
  )
}

function GroupContents({ group: { name, operations } }: { group: OperationGroup }) {
  const hidden = useComputed(() => isSearching.value && !operations.some(matchesSearch))
  return (
    <section hidden={hidden}>
      <h2>{name}</h2>
      <ul>
        {operations.map((operation) => (
          <OperationEntry key={operation.operationId} operation={operation} />
        ))}
      </ul>
    </section>
  )
}

function OperationEntry({ operation }: { operation: Operation }) {
  const { operationId, method, summary } = operation
  const hidden = useComputed(() => !matchesSearch(operation))
  return (
    <li hidden={hidden}>
      <Entry id={operationId}>
        <span class={`method ${method}`}>{method === 'delete' ? 'del' : method}</span>
        <span>{summary}</span>
      </Entry>
    </li>
  )
}

function Entry({ id, children }: { id: string; children: ComponentChildren }) {
  const current = useComputed(() => (reading.value === id ? 'location' : undefined))
  return (
    <a href={`#${id}`} aria-current={current}>
      {children}
    </a>
  )
}

/** Marks the visible section in the contents, and scrolls its entry into view. */
function watchReading(contents: HTMLElement | null): (() => void) | undefined {
  if (contents === null) return undefined
  const observer = new IntersectionObserver(
    (entries) => {
      const entry = entries.find(({ isIntersecting }) => isIntersecting)
      if (entry === undefined) return
      reading.value = entry.target.id
      const link = contents.querySelector(`a[href="#${CSS.escape(entry.target.id)}"]`)
      if (link === null) return
      const { top, bottom } = link.getBoundingClientRect()
      const { top: from, bottom: to } = contents.getBoundingClientRect()
      if (top < from || bottom > to) contents.scrollTop += top - from - contents.clientHeight / 2
    },
    { rootMargin: '-80px 0px -70% 0px' },
  )
  for (const part of document.querySelectorAll('.operation, section[id]')) observer.observe(part)
  return () => observer.disconnect()
}
