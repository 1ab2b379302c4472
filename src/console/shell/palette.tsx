import { effect, signal } from '@preact/signals'
import { useId, useState } from 'preact/hooks'
import { NewAgent } from '../parts/new-agent.js'
import { Dialog } from '../parts/dialog.js'
import { lazy, useLoaded } from '../parts/load.js'
import { type Session, session } from '../parts/session.js'
import { type Command, commandsFor, find, type Overlay } from './commands.js'

const NewKey = lazy(async () => (await import('../parts/new-key.js')).NewKey)

/** The dialog over the page: the palette, or what one of its actions has opened. */
const overlay = signal<Overlay>('nothing')

// The next session does not begin with a dialog of the last one.
effect(() => {
  if (session.value.kind === 'out') overlay.value = 'nothing'
})

/** Opens the palette with Ctrl+K (⌘K), and with `/` outside text fields. */
export function watchKeys(): void {
  addEventListener('keydown', (event) => {
    const isChord = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k'
    const isSlash = event.key === '/' && !event.ctrlKey && !event.metaKey && !isTyping(event.target)
    // An open dialog keeps the text typed into it.
    if ((!isChord && !isSlash) || document.querySelector('dialog[open]') !== null) return
    event.preventDefault()
    overlay.value = 'palette'
  })
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, select, textarea') !== null
}

/** Opens the palette without a keyboard, and names its keyboard shortcuts. */
export function PaletteButton() {
  return (
    <button
      type="button"
      class="quiet palette-button"
      aria-keyshortcuts="Control+K /"
      title="Ctrl+K or /"
      onClick={() => {
        overlay.value = 'palette'
      }}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <path d="M11 11l4 4M7 1.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11z" />
      </svg>
      <span>Go to…</span>
    </button>
  )
}

/** Finds screens and actions by their first letters, and whatever `find` finds on the server. */
export function Palette() {
  const shown = overlay.value
  const { value } = session
  const close = (): void => {
    overlay.value = 'nothing'
  }
  if (shown === 'palette') return <Choice close={close} />
  if (value.kind !== 'in') return null
  if (shown === 'new-agent') return <NewAgent service={value.service} close={close} />
  if (shown === 'new-key') return <NewKey session={value} created={showKeys} close={close} />
  return null
}

function showKeys(): void {
  location.hash = '#/keys'
}

function Choice({ close }: { close: () => void }) {
  const [typed, setTyped] = useState('')
  const [position, setPosition] = useState(0)
  const id = useId()
  const { found, note } = useFound(session.value, typed)
  const at = Math.min(position, found.length - 1)
  const run = (command: Command | undefined): void => {
    if (command === undefined) return
    // The dialog returns the focus before the next dialog takes it.
    close()
    overlay.value = command.act() ?? 'nothing'
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) setPosition((at + step + found.length) % Math.max(1, found.length))
    else if (event.key === 'Enter') run(found[at])
    else return
    event.preventDefault()
  }
  return (
    <Dialog title="Go to" class="dialog palette" close={close}>
      <input
        role="combobox"
        aria-label="Agent, hash, ID, e-mail, screen or action"
        placeholder="Agent, hash, ID, e-mail, screen or action"
        aria-expanded="true"
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={found.length === 0 ? undefined : `${id}-${at}`}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value)
          setPosition(0)
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={id} role="listbox" aria-label="Results" class="plain palette-list">
        {found.map((command, index) => (
          <Option
            key={`${command.kind} ${command.name}`}
            id={`${id}-${index}`}
            command={command}
            isAt={index === at}
            run={run}
          />
        ))}
      </ul>
      <p role="status" class="muted">
        {note}
      </p>
    </Dialog>
  )
}

function Option(props: { id: string; command: Command; isAt: boolean; run: (command: Command) => void }) {
  const { id, command, isAt, run } = props
  const { name, kind } = command
  return (
    <li
      ref={(element) => {
        if (isAt) element?.scrollIntoView({ block: 'nearest' })
      }}
      id={id}
      role="option"
      aria-selected={isAt}
      onClick={() => run(command)}
    >
      <span>{name}</span> <small>{kind}</small>
    </li>
  )
}

function missingText({ name, missing }: Command): string {
  return `${name} (needs ${missing})`
}

/**
 * Screens and actions whose names begin with the letters, what the server finds, and the screens and actions
 * in which a later word begins with the letters. The note says what the key cannot use.
 */
function useFound(current: Session, typed: string): { found: Command[]; note: string } {
  const wanted = typed.trim()
  const { loaded } = useLoaded(wanted, async (signal) =>
    wanted === '' || current.kind !== 'in' ? [] : find(current, wanted, signal),
  )
  const letters = wanted.toLowerCase()
  const matches = commandsFor(current).map((command) => ({
    command,
    // The position of a word that begins with the letters; -1 if there is none.
    at: ` ${command.name.toLowerCase()}`.indexOf(` ${letters}`),
  }))
  const allowed = matches.filter(({ command }) => command.missing === undefined)
  const found = [
    ...allowed.filter(({ at }) => at === 0).map(({ command }) => command),
    ...(loaded.value ?? []),
    ...allowed.filter(({ at }) => at > 0).map(({ command }) => command),
  ]
  if (loaded.kind === 'failed') return { found, note: loaded.message }
  const missing = matches.filter(({ command, at }) => command.missing !== undefined && at >= 0)
  if (wanted !== '' && missing.length > 0) {
    return { found, note: `Not permitted: ${missing.map(({ command }) => missingText(command)).join(', ')}` }
  }
  return { found, note: loaded.kind === 'loaded' && found.length === 0 ? `No results for “${typed}”` : '' }
}
