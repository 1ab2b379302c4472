import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { escapeUnseen, mixesScripts, quotedText } from '../../auth/shown-text.js'
import { exactTimeText, keyDigits, shortHash, timeText } from './format.js'

/** A moment in the zone of the reader; the exact one in UTC on hover. */
export function Time({ ms }: { ms: number }) {
  return (
    <time dateTime={exactTimeText(ms)} title={exactTimeText(ms)}>
      {timeText(ms)}
    </time>
  )
}

/** A hash or key: its beginning, the whole of it on hover, and a button that copies the whole. */
export function Hash({ hex, name }: { hex: string; name: string }) {
  return (
    <span class="hash">
      <code title={hex}>{shortHash(hex)}</code>
      <CopyButton text={hex} name={name} />
    </span>
  )
}

/** A public key by its last digits, as people name keys; the whole of it on hover, and a button that copies the whole. */
export function Key({ hex, name }: { hex: string; name: string }) {
  return (
    <span class="hash">
      <code title={hex}>…{keyDigits(hex)}</code>
      <CopyButton text={hex} name={name} />
    </span>
  )
}

/** Copies a text, and says so. */
export function CopyButton({ text, name }: { text: string; name: string }) {
  const [said, setSaid] = useState('')
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      // Browsers give the clipboard to pages of https or localhost only.
      setSaid('Copying is not allowed here')
    }
  }
  return (
    <button
      type="button"
      class="quiet copy"
      aria-label={`Copy ${name}`}
      onClick={() => void copy()}
      onBlur={() => setSaid('')}
    >
      {said === '' ? 'Copy' : said}
    </button>
  )
}

/** A text or value that a user chose, in quotes: nothing in it is unseen, nor taken for what stands around it. */
export function Quoted({ value }: { value: unknown }) {
  return (
    <bdi>
      <code>{quotedText(value)}</code>
    </bdi>
  )
}

/** A name or e-mail that a user chose; marked where a word of it mixes scripts, of which letters look alike. */
export function Name({ text }: { text: string }) {
  return (
    <>
      <bdi>{escapeUnseen(text)}</bdi>
      {mixesScripts(text) && (
        <span
          class="badge"
          title="Letters of several scripts stand in one word: it may look like another name"
        >
          mixed scripts
        </span>
      )}
    </>
  )
}

/** Something that went wrong, and what can be done. */
export function Failure({ message, retry }: { message: string; retry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <p>{message}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** Where there is nothing yet, and what to do about it. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <div>{children}</div>
    </div>
  )
}

/** Says that something is being read; seen only after a moment, so that nothing flickers. */
export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Reading {what}…
    </p>
  )
}

/** A button that needs a scope: disabled without it, with the scope named. */
export function ScopedButton(props: {
  allowed: boolean
  scope: string
  class?: string
  onClick: () => void
  children: ComponentChildren
}) {
  const { allowed, scope, onClick, children } = props
  return (
    <span class="scoped">
      <button type="button" class={props.class ?? ''} disabled={!allowed} onClick={onClick}>
        {children}
      </button>
      {!allowed && (
        <small>
          needs <code>{scope}</code>
        </small>
      )}
    </span>
  )
}
