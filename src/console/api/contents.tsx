import { signal, useComputed } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Operation, OperationGroup } from './document.js'
import { fits, isSearching } from './context.js'

/** The part of the page that is being read. */
const reading = signal('')

const starts = [
  ['start', 'Introduction'],
  ['authentication', 'Credentials'],
  ['errors', 'Errors'],
] as const

/** Every operation by its name. */
export function Contents(props: { groups: readonly OperationGroup[]; isOpen: boolean; close: () => void }) {
  const { groups, isOpen, close } = props
  const place = useRef<HTMLElement>(null)
  useEffect(() => (groups.length === 0 ? undefined : watchReading(place.current)), [groups])
  return (
    <nav
      ref={place}
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
  const hidden = useComputed(() => isSearching.value && !operations.some(fits))
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
  const hidden = useComputed(() => !fits(operation))
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

/** Marks in the contents what is being read, and keeps it in view. */
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
