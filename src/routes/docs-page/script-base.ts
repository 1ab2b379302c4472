/** Elements, references and small parts that the rest of the page's script is built of. */
export const baseScript = String.raw`
/* Text goes into the page as text: nothing of the document is ever read as HTML. */
const byId = (id) => document.getElementById(id)

function element(name, attributes, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === false) continue
    if (typeof value === 'function') made.addEventListener(key, value)
    else made.setAttribute(key, value === true ? '' : String(value))
  }
  made.append(...children.flat(9).filter((child) => child !== undefined && child !== null && child !== false && child !== ''))
  return made
}

/* The little Markdown that descriptions use: code between backticks. */
function prose(text) {
  return String(text || '').split(/\x60/).map((part, place) => (place % 2 === 0 ? part : element('code', null, part)))
}

let api = { paths: {}, components: {} }

/* Follows $ref; gives what it leads to and the last name on the way. */
function follow(node) {
  let name
  let at = node
  for (let steps = 0; at && at.$ref && steps < 9; steps++) {
    const parts = at.$ref.slice(2).split('/')
    name = parts[parts.length - 1]
    at = parts.reduce((found, part) => found && found[part.replaceAll('~1', '/').replaceAll('~0', '~')], api)
  }
  return { name, value: at || {} }
}

const pretty = (value) => JSON.stringify(value, null, 2)

/* JSON text in colours. */
function coloured(text) {
  const pattern = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
  const parts = []
  let end = 0
  for (const match of text.matchAll(pattern)) {
    const kind = match[2] ? 't-name' : match[1] ? 't-text' : match[3] ? 't-word' : 't-number'
    const piece = match[1] || match[0]
    parts.push(text.slice(end, match.index), element('span', { class: kind }, piece))
    end = match.index + piece.length
  }
  parts.push(text.slice(end))
  return parts
}

function copyButton(text) {
  const button = element('button', { type: 'button', class: 'copy', click: copy }, 'Copy')
  async function copy() {
    try {
      await navigator.clipboard.writeText(text())
      button.textContent = 'Copied'
      announce('Copied')
    } catch {
      button.textContent = 'Not allowed here'
    }
    setTimeout(() => (button.textContent = 'Copy'), 1600)
  }
  return button
}

/* A dark panel: its heading, what else stands in its bar, and text. */
function panel(heading, extra, pre) {
  return element(
    'div',
    { class: 'panel' },
    element('header', null, element('span', null, heading), extra, element('span', { class: 'space' }), copyButton(() => pre.textContent)),
    pre,
  )
}

const codeArea = (label) => element('pre', { tabindex: '0', role: 'region', 'aria-label': label })

function announce(text) {
  byId('announcement').textContent = text
}
`
