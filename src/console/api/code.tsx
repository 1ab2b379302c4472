import type { ComponentChildren, Ref } from 'preact'
import { CopyButton } from '../parts/texts.js'

/** Renders the only Markdown that descriptions use: code between backticks. */
export function Prose({ text }: { text: string }) {
  return (
    <>{text.split('`').map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}</>
  )
}

/** A code panel with a heading, further controls (`children`) and a copy button. */
export function CodePanel(props: {
  heading: string
  /** Names the text for screen readers and the copy button. */
  name: string
  text: string
  children?: ComponentChildren
  isJson?: boolean
  area?: Ref<HTMLPreElement>
}) {
  const { heading, name, text, children, isJson = false, area = null } = props
  return (
    <div class="panel">
      <header>
        <span>{heading}</span>
        {children}
        <span class="space" />
        <CopyButton text={text} name={name.toLowerCase()} />
      </header>
      <pre ref={area} tabIndex={0} role="group" aria-label={name}>
        {isJson ? <Json text={text} /> : text}
      </pre>
    </div>
  )
}

const token = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** JSON with syntax highlighting. */
function Json({ text }: { text: string }) {
  const parts: ComponentChildren[] = []
  let end = 0
  for (const match of text.matchAll(token)) {
    const [whole, quoted, colon, word] = match
    const piece = quoted ?? whole
    parts.push(text.slice(end, match.index))
    parts.push(
      <span key={match.index} class={kindOf({ quoted, colon, word })}>
        {piece}
      </span>,
    )
    end = match.index + piece.length
  }
  parts.push(text.slice(end))
  return <>{parts}</>
}

function kindOf(found: Record<'quoted' | 'colon' | 'word', string | undefined>): string {
  if (found.colon !== undefined) return 't-name'
  if (found.quoted !== undefined) return 't-text'
  return found.word === undefined ? 't-number' : 't-word'
}
