import { options, type VNode } from 'preact'
import { shownText } from '../../auth/shown-text.js'

/** Attributes that are not shown, or that the user edits. */
const rawAttributes = new Set(['value', 'defaultValue', 'href', 'src'])

/**
 * Makes every text and attribute of the page pass `shownText`, so that no text of a record, name or file is
 * shown without it. Preact calls the hook for each node that it creates, texts included.
 */
export function escapeShownTexts(): void {
  const { vnode: next } = options
  options.vnode = (node) => {
    escapeNode(node)
    next?.(node)
  }
}

function escapeNode(node: VNode): void {
  const props: unknown = node.props
  // A text has no type, and its text instead of props.
  if (typeof props === 'string') Object.assign(node, { props: shownText(props) })
  if (typeof node.type !== 'string' || typeof props !== 'object' || props === null) return
  for (const [name, value] of Object.entries(props)) {
    if (typeof value !== 'string' || name === 'children' || rawAttributes.has(name)) continue
    const shown = shownText(value)
    if (shown !== value) Object.assign(props, { [name]: shown })
  }
}
