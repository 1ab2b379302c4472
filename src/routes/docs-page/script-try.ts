/** The form that sends a real request and shows what came back. */
export const tryScript = String.raw`
const SHOWN_CHARACTERS_MAX = 200000

function tryView(request) {
  const { operation } = request
  const result = element('div', { class: 'result', hidden: true, 'aria-live': 'polite' })
  const send = element('button', { type: 'submit', class: 'button' + (operation.method === 'delete' ? ' risky' : '') }, 'Send')
  const stop = element('button', { type: 'button', class: 'stop', hidden: true }, 'Stop')
  const fields = operation.parameters.filter((one) => one.name !== 'Content-Encoding').map((one) => parameterField(request, one))
  const form = element(
    'form',
    { submit: onSubmit, autocomplete: 'off' },
    fields,
    request.choice && bodyField(request),
    element('div', { class: 'send' }, send, stop),
  )
  async function onSubmit(event) {
    event.preventDefault()
    const aborter = new AbortController()
    stop.onclick = () => aborter.abort()
    send.disabled = true
    stop.hidden = false
    try {
      await sendRequest(request, { result, signal: aborter.signal })
    } finally {
      send.disabled = false
      stop.hidden = true
    }
  }
  return element('details', { class: 'try' }, element('summary', null, 'Try it'), form, result)
}

function parameterField(request, parameter) {
  const { name, required, schema } = parameter
  const id = request.operation.operationId + '-' + name
  const choices = follow(schema).value.enum
  const place = parameter.in === 'path' ? '' : parameter.in
  const input = choices
    ? element('select', { id, input: changed }, element('option', { value: '' }, '–'), choices.map((one) => element('option', { value: one }, one)))
    : element('input', { id, input: changed, required, spellcheck: 'false', placeholder: placeholderOf(schema) })
  input.value = request.values[name]
  function changed() {
    request.values[name] = input.value
    request.changed()
  }
  return element('div', { class: 'field' }, element('label', { for: id }, name, place && element('small', null, place)), input)
}

function placeholderOf(schema) {
  const { value } = follow(schema)
  return value.default === undefined ? undefined : String(value.default)
}

function bodyField(request) {
  const id = request.operation.operationId + '-body'
  const area = element('textarea', { id, spellcheck: 'false', input: changed })
  area.value = request.body
  function changed() {
    request.body = area.value
    request.changed()
  }
  request.watchers.push(() => {
    if (area.value !== request.body) area.value = request.body
  })
  return element('div', { class: 'field whole' }, element('label', { for: id }, 'Body'), area)
}

async function sendRequest(request, { result, signal }) {
  const { operation, choice, body } = request
  const headers = new Headers(headersOf(request))
  const key = byId('key').value.trim()
  if (key !== '' && operation['x-scope'] !== 'none') headers.set('Authorization', 'Bearer ' + key)
  const startedMs = performance.now()
  result.hidden = false
  result.replaceChildren(element('p', null, 'Sending…'))
  try {
    const response = await fetch(addressOf(request), {
      method: operation.method.toUpperCase(),
      headers,
      body: choice ? body : undefined,
      signal,
      cache: 'no-store',
    })
    await showResponse(response, { result, startedMs, keyMissing: key === '' })
  } catch (error) {
    if (signal.aborted) result.append(element('p', null, 'Stopped'))
    else result.replaceChildren(element('p', { class: 'broken' }, 'No answer: ' + error.message))
  }
}

async function showResponse(response, { result, startedMs, keyMissing }) {
  const status = String(response.status)
  const line = element('p', null, element('b', { class: 'code-status ' + statusClass(status) }, status + ' ' + response.statusText))
  const time = element('span', { class: 'muted' }, Math.round(performance.now() - startedMs) + ' ms')
  line.append(time)
  if (status === '401' && keyMissing) line.append(element('button', { type: 'button', class: 'stop', click: () => byId('key').focus() }, 'Type an API key'))
  const rows = [...response.headers].flatMap(([name, value]) => [element('dt', null, name), element('dd', null, value)])
  const details = element('details', null, element('summary', null, 'Headers'), element('dl', null, rows))
  const pre = codeArea('Body of the answer')
  result.replaceChildren(line, details)
  result.scrollIntoView({ block: 'nearest' })
  if (!response.body) return
  const text = await shownAsItComes(response, { pre, show: () => pre.isConnected || result.append(panel('Body', undefined, pre)) })
  time.textContent = Math.round(performance.now() - startedMs) + ' ms, ' + text.length.toLocaleString('en') + ' characters'
  if (/json$/.test((response.headers.get('content-type') || '').split(';')[0].trim())) showJson(pre, text)
  result.scrollIntoView({ block: 'nearest' })
}

/* Shows the body while it comes, so that a stream can be watched. */
async function shownAsItComes(response, { pre, show }) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text
    text += value
    pre.textContent = text.slice(-SHOWN_CHARACTERS_MAX)
    show()
    pre.scrollTop = response.headers.get('content-type') === 'text/event-stream' ? pre.scrollHeight : 0
    if (text.length > 4 * SHOWN_CHARACTERS_MAX) text = text.slice(-SHOWN_CHARACTERS_MAX)
  }
}

function showJson(pre, text) {
  if (text.length > SHOWN_CHARACTERS_MAX) return
  try {
    pre.replaceChildren(...coloured(pretty(JSON.parse(text))))
  } catch {
    pre.textContent = text
  }
}
`
