import { signal, useComputed } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Read, useLoaded } from '../parts/load.js'
import { serviceUrl } from '../parts/service-url.js'
import { Prose } from './code.js'
import { Api, apiKey, isSearching, matchesSearch, searchText } from './context.js'
import {
  type ApiDocument,
  groupsOf,
  type Operation,
  type OperationGroup,
  operationsOf,
  readDocument,
} from './document.js'
import { OperationView } from './operation-view.js'
import { PlainTable } from './schema-table.js'
import type { ComponentChildren } from 'preact'
import { AppearanceSwitch, Mark } from '../shell/appearance.js'
import { Button } from '../parts/texts.js'

/** The API of this server on one page, read from its OpenAPI document. */
export function ApiPage() {
  const read = useLoaded('', readDocument)
  const [isMenuOpen, setMenuOpen] = useState(false)
  const api = read.loaded.value
  const operations = useMemo(() => (api === undefined ? [] : operationsOf(api)), [api])
  const groups = useMemo(() => (api === undefined ? [] : groupsOf(api, operations)), [api])
  return (
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <Bar version={api?.info.version} isMenuOpen={isMenuOpen} setMenuOpen={setMenuOpen} />
      <div class="shell">
        <Contents groups={groups} isOpen={isMenuOpen} close={() => setMenuOpen(false)} />
        <main id="content" tabIndex={-1}>
          <Read of={read} what="the document">
            {(value) => (
              <Api.Provider value={value}>
                <Whole api={value} operations={operations} groups={groups} />
              </Api.Provider>
            )}
          </Read>
        </main>
      </div>
    </>
  )
}

interface ShownOperations {
  api: ApiDocument
  operations: readonly Operation[]
  groups: readonly OperationGroup[]
}

function Whole({ api, operations, groups }: ShownOperations) {
  // The element that the address names exists only after this render.
  useLayoutEffect(() => {
    const name = decodeURIComponent(location.hash.slice(1))
    if (name !== '') document.getElementById(name)?.scrollIntoView({ behavior: 'instant' })
  }, [])
  return (
    <>
      <Start api={api} count={operations.length} />
      <Found operations={operations} />
      <Authentication api={api} />
      {groups.map((group) => (
        <Group key={group.name} group={group} />
      ))}
      <Errors api={api} />
    </>
  )
}

function Start({ api: { info }, count }: { api: ApiDocument; count: number }) {
  return (
    <section class="hero" id="start" aria-labelledby="title" hidden={isSearching}>
      <div>
        <p class="eyebrow">HTTP API</p>
        <h1 id="title">{info.title}</h1>
        <p class="lead">{info.summary}</p>
        <div class="introduction">
          {(info.description ?? '').split(/\n\s*\n/).map((text) => (
            <p key={text}>
              <Prose text={text} />
            </p>
          ))}
        </div>
        <p class="actions">
          <a class="button primary" href="openapi.json">
            OpenAPI document
          </a>
          <span class="muted">
            {count} operations at {serviceUrl()}
          </span>
        </p>
      </div>
      <ol class="chain" aria-hidden="true">
        {chain.map(({ seq, type, before, hash }) => (
          <li key={seq}>
            <b>seq {seq}</b>
            <span>{type}</span>
            <i>prev {before}…</i>
            <em>{hash}…</em>
          </li>
        ))}
      </ol>
    </section>
  )
}

/** A picture of a strand: each record contains the hash of its predecessor. */
const chain = [
  { seq: 0, type: 'sys/genesis', before: '000000', hash: '3fb907e7' },
  { seq: 1, type: 'reading', before: '3fb907', hash: 'b5d4045c' },
  { seq: 2, type: 'reading', before: 'b5d404', hash: '4e074085' },
]

/** The number of operations that match the search. */
function Found({ operations }: { operations: readonly Operation[] }) {
  const message = useComputed(() => {
    const count = operations.filter(matchesSearch).length
    if (!isSearching.value) return ''
    return count === 0 ? `No operations match “${searchText.value}”` : `${count} operations match`
  })
  return (
    <p class="found" role="status">
      {message}
    </p>
  )
}

function Group({ group: { name, description, operations } }: { group: OperationGroup }) {
  const id = `tag-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`
  const hidden = useComputed(() => isSearching.value && !operations.some(matchesSearch))
  return (
    <section class="group" aria-labelledby={id} hidden={hidden}>
      <h2 id={id}>{name}</h2>
      {description !== undefined && (
        <p class="prose">
          <Prose text={description} />
        </p>
      )}
      {operations.map((operation) => (
        <OperationView key={operation.operationId} operation={operation} />
      ))}
    </section>
  )
}

function Authentication({ api }: { api: ApiDocument }) {
  return (
    <section class="group" id="authentication" aria-labelledby="authentication-heading" hidden={isSearching}>
      <h2 id="authentication-heading">Credentials</h2>
      <div class="plain-table">
        <PlainTable heads={['Sent as', 'Description']}>
          {Object.entries(api.components.securitySchemes).map(([name, scheme]) => (
            <tr key={name}>
              <td class="member">
                <code>{scheme.type === 'http' ? 'Authorization: Bearer …' : `?${scheme.name}=…`}</code>
              </td>
              <td class="words">
                <Prose text={scheme.description ?? ''} />
              </td>
            </tr>
          ))}
        </PlainTable>
      </div>
    </section>
  )
}

/** The anchors to which the `type` of a problem links. */
function Errors({ api }: { api: ApiDocument }) {
  return (
    <section class="group" id="errors" aria-labelledby="errors-heading" hidden={isSearching}>
      <h2 id="errors-heading">Errors</h2>
      <div class="plain-table">
        <PlainTable heads={['Code', 'Status', 'Meaning']}>
          {api['x-error-catalogue'].map(({ code, status, title }) => (
            <tr key={code} id={`error-${code}`}>
              <td class="member">
                <code>{code}</code>
              </td>
              <td class="kind">{status}</td>
              <td class="words">{title}</td>
            </tr>
          ))}
        </PlainTable>
      </div>
    </section>
  )
}

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

/** The bar of the page: the title, the search and the key. */
export function Bar(props: {
  version: string | undefined
  isMenuOpen: boolean
  setMenuOpen: (isOpen: boolean) => void
}) {
  const { version, isMenuOpen, setMenuOpen } = props
  return (
    <header class="bar">
      <Button
        text="Contents"
        class="menu-button"
        aria-expanded={isMenuOpen}
        aria-controls="navigation"
        onClick={() => setMenuOpen(!isMenuOpen)}
      />
      <a class="brand" href="#start" aria-label="Strandfast API, to the top">
        <Mark />
        <span>Strandfast API</span>
      </a>
      {version !== undefined && <span class="version">{version}</span>}
      <a class="to-console" href="console">
        Console
      </a>
      <div class="bar-end">
        <Search onEscape={() => setMenuOpen(false)} />
        <input
          id="key"
          type="password"
          placeholder="API key, in memory only"
          aria-label="API key"
          autocomplete="off"
          spellcheck={false}
          data-1p-ignore
          data-lpignore="true"
          value={apiKey}
          onInput={(event) => {
            apiKey.value = event.currentTarget.value
          }}
        />
        <AppearanceSwitch />
      </div>
    </header>
  )
}

function Search({ onEscape }: { onEscape: () => void }) {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const { key, target, ctrlKey, metaKey } = event
      const isTyping = target instanceof Element && target.closest('input, textarea, select') !== null
      if (key === '/' && !isTyping && !ctrlKey && !metaKey) {
        event.preventDefault()
        field.current?.focus()
      }
      if (key === 'Escape') onEscape()
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  }, [])
  return (
    <div class="find">
      <input
        ref={field}
        type="search"
        placeholder="Search"
        aria-label="Search operations"
        aria-keyshortcuts="/"
        autocomplete="off"
        spellcheck={false}
        value={searchText}
        onInput={(event) => {
          searchText.value = event.currentTarget.value
        }}
        onKeyDown={({ key }) => {
          if (key === 'Escape') searchText.value = ''
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  )
}
