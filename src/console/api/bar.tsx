import { useEffect, useRef } from 'preact/hooks'
import { AppearanceSwitch, Mark } from '../shell/appearance.js'
import { apiKey, searchText } from './context.js'
import { Button } from '../parts/texts.js'

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
