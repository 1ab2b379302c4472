import { signal } from '@preact/signals'
import { useId, useState } from 'preact/hooks'
import { NewAgent } from '../parts/new-agent.js'
import { namesReached } from '../parts/reached.js'
import { Dialog } from '../parts/dialog.js'
import { lazy } from '../parts/lazy.js'
import { useLoaded } from '../parts/load.js'
import { may, type Session, session } from '../parts/session.js'
import { agentCommand, type Command, commandsFor, type Opened } from './commands.js'

const NewKey = lazy(async () => (await import('../parts/new-key.js')).NewKey)

/** What is shown over the page: the palette, or what one of its actions opens. */
const opened = signal<Opened>('nothing')

const AGENTS_SHOWN = 8

/** Opens the palette with Ctrl+K (⌘K) anywhere, and with `/` where nothing is being typed. */
export function watchKeys(): void {
  addEventListener('keydown', (event) => {
    const isChord = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k'
    const isSlash = event.key === '/' && !event.ctrlKey && !event.metaKey && !isTyping(event.target)
    // A dialog that is open keeps what has been typed into it.
    if ((!isChord && !isSlash) || document.querySelector('dialog[open]') !== null) return
    event.preventDefault()
    opened.value = 'palette'
  })
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, select, textarea') !== null
}

/** Opens the palette for who has no keyboard, and tells of the keys. */
export function PaletteButton() {
  return (
    <button
      type="button"
      class="quiet palette-button"
      aria-keyshortcuts="Control+K /"
      title="Ctrl+K or /"
      onClick={() => {
        opened.value = 'palette'
      }}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <path d="M11 11l4 4M7 1.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11z" />
      </svg>
      <span>Go to…</span>
    </button>
  )
}

/** Screens, actions and agents by a few letters. */
export function Palette() {
  const shown = opened.value
  const { value } = session
  const close = (): void => {
    opened.value = 'nothing'
  }
  if (shown === 'palette') return <Choice close={close} />
  if (value.kind !== 'in') return null
  if (shown === 'new-agent') return <NewAgent service={value.service} close={close} />
  if (shown === 'new-key') return <NewKey session={value} made={showKeys} close={close} />
  return null
}

function showKeys(): void {
  location.hash = '#/keys'
}

function Choice({ close }: { close: () => void }) {
  const [typed, setTyped] = useState('')
  const [place, setPlace] = useState(0)
  const id = useId()
  const found = useFound(session.value, typed)
  const at = Math.min(place, found.length - 1)
  const run = (command: Command | undefined): void => {
    if (command === undefined || command.missing !== undefined) return
    // The dialog gives the focus back before the next one takes it.
    close()
    opened.value = command.act() ?? 'nothing'
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) setPlace((at + step + found.length) % Math.max(1, found.length))
    else if (event.key === 'Enter') run(found[at])
    else return
    event.preventDefault()
  }
  return (
    <Dialog title="Go to" class="dialog palette" close={close}>
      <input
        role="combobox"
        aria-label="Agent, screen or action"
        placeholder="Agent, screen or action"
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
          setPlace(0)
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={id} role="listbox" aria-label="Found" class="plain palette-list">
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
        {found.length === 0 ? `Nothing begins with “${typed}”` : ''}
      </p>
    </Dialog>
  )
}

function Option(props: { id: string; command: Command; isAt: boolean; run: (command: Command) => void }) {
  const { id, command, isAt, run } = props
  const { name, kind, missing } = command
  return (
    <li
      ref={(element) => {
        if (isAt) element?.scrollIntoView({ block: 'nearest' })
      }}
      id={id}
      role="option"
      aria-selected={isAt}
      aria-disabled={missing !== undefined}
      onClick={() => run(command)}
    >
      <span>{name}</span> <small>{missing === undefined ? kind : `needs ${missing}`}</small>
    </li>
  )
}

/** What the letters lead to: screens, actions and agents whose names begin so, then those with a later word that does. */
function useFound(current: Session, typed: string): Command[] {
  const wanted = typed.trim()
  const { loaded } = useLoaded(wanted, async (signal) => {
    if (wanted === '' || current.kind !== 'in' || !may(current.who, 'records:read')) return []
    return namesReached(current.service, current.who, { prefix: wanted, most: AGENTS_SHOWN, signal })
  })
  const letters = wanted.toLowerCase()
  const places = commandsFor(current).map((command) => ({
    command,
    // Where a word of it begins so; -1 where none does.
    at: ` ${command.name.toLowerCase()}`.indexOf(` ${letters}`),
  }))
  return [
    ...places.filter(({ at }) => at === 0).map(({ command }) => command),
    ...(loaded.value ?? []).map(agentCommand),
    ...places.filter(({ at }) => at > 0).map(({ command }) => command),
  ]
}
