import { type ButtonHTMLAttributes, type ComponentChildren, Fragment } from 'preact'
import { useState } from 'preact/hooks'
import { escapeUnseen, mixesScripts, quotedText } from '../../auth/shown-text.js'
import { exactTimeText, keyDigits, shortHash, timeText } from './format.js'
import { useRoving } from './roving.js'

/** A time in the chosen time zone; on hover in UTC. */
export function Time({ ms }: { ms: number }) {
  return (
    <time dateTime={exactTimeText(ms)} title={exactTimeText(ms)}>
      {timeText(ms)}
    </time>
  )
}

/** A hash by its first digits, with the whole hash on hover and a copy button. */
export function Hash({ hex, name }: { hex: string; name: string }) {
  return (
    <span class="hash">
      <code title={hex}>{shortHash(hex)}</code>
      <CopyButton text={hex} name={name} />
    </span>
  )
}

/** A public key by its last digits, with the whole key on hover and a copy button. */
export function Key({ hex, name }: { hex: string; name: string }) {
  return (
    <span class="hash">
      <code title={hex}>…{keyDigits(hex)}</code>
      <CopyButton text={hex} name={name} />
    </span>
  )
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { text: ComponentChildren }

/** A button with a text; it submits no form unless its type says so. */
export function Button({ text, ...more }: ButtonProps) {
  return (
    <button type="button" {...more}>
      {text}
    </button>
  )
}

/** A button that copies a text and shows the result. */
export function CopyButton({ text, name }: { text: string; name: string }) {
  const [outcome, setOutcome] = useState('')
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setOutcome('Copied')
    } catch {
      // Browsers allow the clipboard on https and localhost only.
      setOutcome('Copying is not allowed here')
    }
  }
  return (
    <Button
      text={outcome === '' ? 'Copy' : outcome}
      class="quiet copy"
      aria-label={outcome === '' ? `Copy ${name}` : undefined}
      onClick={() => void copy()}
      onBlur={() => setOutcome('')}
    />
  )
}

/**
 * A user's text or value in quotes, with invisible characters escaped and isolated from the surrounding text.
 */
export function Quoted({ value }: { value: unknown }) {
  return (
    <bdi>
      <code>{quotedText(value)}</code>
    </bdi>
  )
}

/** A user's name or e-mail, marked if a word mixes scripts whose letters look alike. */
export function Name({ text }: { text: string }) {
  return (
    <>
      <bdi>{escapeUnseen(text)}</bdi>
      {mixesScripts(text) && (
        <span class="badge" title="A word mixes letters of several scripts, so it may look like another name">
          mixed scripts
        </span>
      )}
    </>
  )
}

/** An error message, with a button to retry. */
export function Failure({ message, retry }: { message: string; retry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <p>{message}</p>
      {retry && <Button text="Try again" onClick={retry} />}
    </div>
  )
}

/** The placeholder of an empty list, with advice. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <div>{children}</div>
    </div>
  )
}

/** A loading text, which appears after a short delay to avoid flicker. */
export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Loading {what}…
    </p>
  )
}

/** A button that needs a scope. Without the scope the button is disabled and names it. */
export function ScopedButton(props: ButtonProps & { allowed: boolean; scope: string }) {
  const { allowed, scope, ...button } = props
  return (
    <span class="scoped">
      <Button {...button} disabled={!allowed} />
      {!allowed && (
        <small>
          needs <code>{scope}</code>
        </small>
      )}
    </span>
  )
}

/** Values by name, in order; undefined values are omitted. */
type FactValues = Readonly<Record<string, ComponentChildren>>

export function Facts({ facts }: { facts: FactValues }) {
  return (
    <dl class="facts">
      {shown(facts).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}

export function LineFacts({ facts }: { facts: FactValues }) {
  const buttons = useRoving<HTMLDListElement>()
  return (
    <dl ref={buttons} class="line-facts">
      {shown(facts).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function shown(facts: FactValues) {
  return Object.entries(facts).filter(([, value]) => value !== undefined)
}
