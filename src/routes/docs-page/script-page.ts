/** The page around the operations: contents, search, keys and the start. */
export const pageScript = String.raw`
let shown = []

function groupsOf(operations) {
  const known = (api.tags || []).map((tag) => tag.name)
  const names = [...new Set([...known, ...operations.map((one) => one.tag)])]
  return names.map((name) => ({
    name,
    description: ((api.tags || []).find((tag) => tag.name === name) || {}).description,
    operations: operations.filter((one) => one.tag === name),
  }))
}

function groupView({ name, description, operations }) {
  const id = 'tag-' + name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return element(
    'section',
    { class: 'group', 'aria-labelledby': id },
    element('h2', { id }, name),
    description && element('p', { class: 'prose' }, prose(description)),
    operations.map(operationView),
  )
}

function securityView() {
  const schemes = Object.entries((api.components || {}).securitySchemes || {})
  const rows = schemes.map(([name, scheme]) => {
    const how = scheme.type === 'http' ? 'Authorization: Bearer …' : '?' + scheme.name + '=…'
    return element('tr', null, element('td', { class: 'member' }, element('code', null, how)), element('td', { class: 'words' }, prose(scheme.description)))
  })
  return plainSection('authentication', 'Authentication', tableOf(['Sent as', 'What it is'], rows))
}

function errorsView() {
  const rows = (api['x-error-catalogue'] || []).map(({ code, status, title }) =>
    element(
      'tr',
      { id: 'error-' + code },
      element('td', { class: 'member' }, element('code', null, code)),
      element('td', { class: 'kind' }, String(status)),
      element('td', { class: 'words' }, title),
    ),
  )
  return plainSection('errors', 'Errors', tableOf(['Code', 'Status', 'Meaning'], rows))
}

function plainSection(id, heading, content) {
  return element('section', { class: 'group', id, 'aria-labelledby': id + '-heading' }, element('h2', { id: id + '-heading' }, heading), element('div', { class: 'plain' }, content))
}

function navigationView(groups) {
  const link = (href, ...content) => element('li', null, element('a', { href }, content))
  const start = element('section', null, element('h2', null, 'Start'), element('ul', null, link('#start', 'Introduction'), link('#authentication', 'Authentication'), link('#errors', 'Errors')))
  const lists = groups.map(({ name, operations }) => {
    const links = operations.map(({ operationId, method, summary }) =>
      link('#' + operationId, element('span', { class: 'method ' + method }, method === 'delete' ? 'del' : method), element('span', null, summary)),
    )
    return element('section', null, element('h2', null, name), element('ul', null, links))
  })
  byId('navigation').replaceChildren(start, ...lists)
}

function search() {
  const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean)
  let count = 0
  for (const { operation, text } of shown) {
    const fits = words.every((word) => text.includes(word))
    if (fits) count += 1
    byId(operation.operationId).hidden = !fits
    const link = document.querySelector('.navigation a[href="#' + operation.operationId + '"]')
    if (link) link.parentElement.hidden = !fits
  }
  for (const section of document.querySelectorAll('.navigation section, .group')) {
    const parts = section.querySelectorAll('li, .operation')
    section.hidden = words.length > 0 && ![...parts].some((part) => !part.hidden && (part.matches('.operation') || part.querySelector('.method')))
  }
  const nothing = byId('nothing')
  nothing.hidden = words.length === 0 || count > 0
  nothing.textContent = 'No operation fits “' + byId('search').value + '”'
  document.querySelector('.hero').hidden = words.length > 0
  announce(words.length === 0 ? '' : count + ' operations fit')
}

function setMenu(open) {
  byId('navigation').classList.toggle('open', open)
  byId('menu').setAttribute('aria-expanded', String(open))
}

function onKey(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault()
    byId('search').focus()
  }
  if (event.key !== 'Escape') return
  setMenu(false)
  if (event.target.id !== 'search') return
  byId('search').value = ''
  search()
}

/* Marks in the contents what is being read. */
function watchReading() {
  const links = new Map([...document.querySelectorAll('.navigation a')].map((link) => [link.hash.slice(1), link]))
  const observer = new IntersectionObserver(
    (entries) => {
      const entry = entries.find((one) => one.isIntersecting)
      const link = entry && links.get(entry.target.id)
      if (!link) return
      for (const other of links.values()) other.removeAttribute('aria-current')
      link.setAttribute('aria-current', 'location')
      const navigation = byId('navigation')
      const { top, bottom } = link.getBoundingClientRect()
      if (top < 70 || bottom > innerHeight) navigation.scrollTop += top - innerHeight / 2
    },
    { rootMargin: '-80px 0px -70% 0px' },
  )
  for (const part of document.querySelectorAll('.operation, section[id]')) observer.observe(part)
}

function show(document_) {
  api = document_
  const operations = operationsOf(api)
  const groups = groupsOf(operations)
  byId('version').textContent = api.info.version
  byId('title').textContent = api.info.title
  byId('lead').textContent = api.info.summary || ''
  const paragraphs = String(api.info.description || '').split(/\n\s*\n/)
  byId('introduction').replaceChildren(...paragraphs.map((text) => element('p', null, prose(text))))
  byId('facts').textContent = operations.length + ' operations at ' + location.origin
  byId('operations').replaceChildren(securityView(), ...groups.map(groupView), errorsView())
  byId('operations').removeAttribute('aria-busy')
  shown = operations.map((operation) => ({
    operation,
    text: [operation.method, operation.path, operation.summary, operation.tag, operation['x-scope'], operation.operationId].join(' ').toLowerCase(),
  }))
  navigationView(groups)
  watchReading()
  const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)))
  if (target) target.scrollIntoView({ behavior: 'instant' })
}

async function start() {
  document.addEventListener('keydown', onKey)
  byId('search').addEventListener('input', search)
  byId('menu').addEventListener('click', () => setMenu(!byId('navigation').classList.contains('open')))
  byId('navigation').addEventListener('click', (event) => event.target.closest('a') && setMenu(false))
  try {
    const response = await fetch('/openapi.json')
    if (!response.ok) throw new Error('status ' + response.status)
    show(await response.json())
  } catch (error) {
    byId('operations').replaceChildren(element('p', { class: 'nothing' }, 'The document could not be read: ' + error.message))
    byId('operations').removeAttribute('aria-busy')
  }
}

start()
`
