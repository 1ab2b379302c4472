/** One operation: its signature, tables, examples and curl line. */
export const operationScript = String.raw`
const methods = ['get', 'post', 'put', 'patch', 'delete']

function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    methods.filter((method) => item[method] && !item[method]['x-twin-of']).map((method) => {
      const operation = item[method]
      const parameters = (operation.parameters || []).map((one) => follow(one).value)
      return { ...operation, method, path, parameters, tag: (operation.tags || ['Other'])[0] }
    }),
  )
}

function operationView(operation) {
  const { operationId, summary, method, path } = operation
  const headingId = operationId + '-heading'
  const scope = operation['x-scope']
  const request = requestState(operation)
  return element(
    'article',
    { class: 'operation', id: operationId, 'aria-labelledby': headingId },
    element('h3', { id: headingId }, element('a', { href: '#' + operationId }, summary)),
    element(
      'div',
      { class: 'signature' },
      element('span', { class: 'method ' + method }, method),
      element('code', null, pathParts(path)),
      element('span', { class: 'scope' }, scope === 'none' ? 'Open to everyone' : ['Scope ', element('code', null, scope)]),
    ),
    element(
      'div',
      { class: 'columns' },
      element('div', { class: 'about' }, parametersView(operation), requestView(operation), answersView(operation)),
      element('div', { class: 'side' }, curlPanel(request), tryView(request), examplePanel(operation)),
    ),
  )
}

function pathParts(path) {
  return path.split(/(\{[^}]+\})/).map((part) => (part.startsWith('{') ? element('b', null, part) : part))
}

function parametersView({ parameters }) {
  const kinds = [['path', 'Path'], ['query', 'Query'], ['header', 'Headers']]
  return kinds.flatMap(([place, heading]) => {
    const rows = parameters
      .filter((one) => one.in === place)
      .map((one) => row({ name: one.name, schema: one.schema, needed: one.required, depth: 0, described: one.description }))
    return rows.length === 0 ? [] : [element('h4', null, heading), tableOf(['Name', 'Type', 'Meaning'], rows)]
  })
}

function requestView({ requestBody }) {
  if (!requestBody) return []
  const words = requestBody.description ? [element('p', { class: 'muted' }, prose(requestBody.description))] : []
  const bodies = Object.entries(requestBody.content).flatMap(([mediaType, { schema }]) => [
    element('h4', null, 'Request body', element('code', null, mediaType)),
    schemaView(schema),
  ])
  return [...bodies, ...words]
}

function statusClass(status) {
  if (status.startsWith('2')) return 'good'
  return status.startsWith('5') ? 'broken' : 'wrong'
}

function answersView({ responses }) {
  const entries = Object.entries(responses).map(([status, node]) => {
    const { description, content } = follow(node).value
    const good = status.startsWith('2')
    return element(
      'details',
      { open: good },
      element(
        'summary',
        null,
        element('b', { class: 'code-status ' + statusClass(status) }, status === 'default' ? 'else' : status),
        element('span', null, description),
      ),
      element('div', { class: 'inside' }, Object.entries(content || {}).map(([mediaType, media]) => answerBody(mediaType, media))),
    )
  })
  return [element('h4', null, 'Answers'), element('div', { class: 'answers' }, entries)]
}

function answerBody(mediaType, { schema, examples }) {
  if (mediaType !== 'application/problem+json') {
    return [element('p', { class: 'muted' }, element('code', null, mediaType)), memberRows(schema, 0, true).length > 0 && schemaView(schema, true)]
  }
  const codes = Object.values(examples || {}).map(({ value }) =>
    element('tr', null, element('td', { class: 'member' }, element('a', { href: '#error-' + value.code }, element('code', null, value.code))), element('td', { class: 'words' }, value.title)),
  )
  if (codes.length === 0) return element('p', { class: 'muted' }, 'A problem (RFC 9457), ', element('code', null, mediaType))
  return tableOf(['Code', 'Meaning'], codes)
}

/* The first answer's example. */
function examplePanel({ responses }) {
  const found = Object.entries(responses).find(([status]) => status.startsWith('2'))
  if (!found) return undefined
  const media = Object.values(follow(found[1]).value.content || {})[0] || {}
  const value = Object.values(media.examples || {}).map((one) => one.value)[0]
  const pre = codeArea('Example of an answer')
  if (value !== undefined) pre.append(...coloured(pretty(value)))
  else if (media.example !== undefined) pre.append(String(media.example))
  else return undefined
  return panel('Answer ' + found[0], undefined, pre)
}

/* What a request is made of; the form changes it, the curl line shows it. */
function requestState(operation) {
  const values = {}
  for (const one of operation.parameters) values[one.name] = one.in === 'path' || one.required ? String(one.example || '') : ''
  const choices = Object.entries((operation.requestBody || {}).content || {}).flatMap(([mediaType, media]) => {
    if (media.example !== undefined) return [{ mediaType, label: mediaType, text: String(media.example) }]
    return Object.entries(media.examples || { body: { value: {} } }).map(([name, { value }], place, all) => ({
      mediaType,
      label: all.length > 1 ? name : mediaType,
      text: pretty(value),
    }))
  })
  const request = { operation, values, choices, choice: choices[0], body: choices[0] ? choices[0].text : '', watchers: [] }
  request.changed = () => request.watchers.forEach((watch) => watch())
  return request
}

function addressOf({ operation, values }) {
  const path = operation.path.replace(/\{([^}]+)\}/g, (whole, name) => (values[name] ? encodeURIComponent(values[name]) : whole))
  const query = new URLSearchParams()
  for (const one of operation.parameters) if (one.in === 'query' && values[one.name]) query.set(one.name, values[one.name])
  return path + (query.size > 0 ? '?' + query : '')
}

function headersOf({ operation, values, choice }) {
  const headers = operation.parameters.filter((one) => one.in === 'header' && values[one.name]).map((one) => [one.name, values[one.name]])
  return choice ? [...headers, ['Content-Type', choice.mediaType]] : headers
}

const isStream = ({ responses }) => 'text/event-stream' in (follow(responses['200'] || {}).value.content || {})

function curlText(request) {
  const { operation, choice, body } = request
  const quote = (text) => "'" + text.replaceAll("'", "'\\''") + "'"
  const verb = operation.method === 'get' ? '' : ' -X ' + operation.method.toUpperCase()
  const lines = ['curl' + (isStream(operation) ? ' -N' : '') + verb + ' ' + quote(location.origin + addressOf(request))]
  if (operation['x-scope'] !== 'none') lines.push('-H "Authorization: Bearer $STRANDFAST_KEY"')
  for (const [name, value] of headersOf(request)) lines.push('-H ' + quote(name + ': ' + value))
  if (choice) lines.push((choice.mediaType === 'application/json' ? '-d ' : '--data-binary ') + quote(body))
  return lines.join(' \\\n  ')
}

function curlPanel(request) {
  const pre = codeArea('The request as a curl line')
  const show = () => (pre.textContent = curlText(request))
  request.watchers.push(show)
  show()
  if (request.choices.length < 2) return panel('curl', undefined, pre)
  const options = request.choices.map(({ label }, place) => element('option', { value: place }, label))
  const select = element('select', { class: 'choice', 'aria-label': 'Example', change: choose }, options)
  function choose() {
    request.choice = request.choices[Number(select.value)]
    request.body = request.choice.text
    request.changed()
  }
  return panel('curl', select, pre)
}
`
