import { ServiceClient } from 'strandfast/client'

/** Rows that the table keeps; older ones make room. */
const ROWS_MAX = 200

const element = (id) => document.getElementById(id)
const connectForm = element('connect')
const verifyForm = element('verify')
const verifyButton = verifyForm.querySelector('button')
const state = element('state')
const verdict = element('verdict')
const rows = element('records')

let client
let agent
let subscription

/** What records hold is shown as text, never as markup. */
function row(event) {
  const made = document.createElement('tr')
  const time = event.timestamp.toISOString()
  const texts = [event.seq, time, event.type, JSON.stringify(event.payload), event.content_hash.slice(0, 16)]
  made.append(
    ...texts.map((text) => {
      const cell = document.createElement('td')
      cell.textContent = text
      return cell
    }),
  )
  return made
}

function show(event) {
  rows.prepend(row(event))
  while (rows.children.length > ROWS_MAX) rows.lastChild.remove()
}

/** Shows what is stored, then what comes; the subscription comes back by itself when the connection is lost. */
function connect({ url, agent: name, apiKey }) {
  subscription?.close()
  rows.replaceChildren()
  verdict.textContent = ''
  client = new ServiceClient({ url, apiKey })
  agent = name
  verifyButton.disabled = false
  subscription = client.subscribeAgent(agent, show, {
    since: 0,
    onOpen: () => (state.textContent = 'Replaying'),
    onCaughtUp: () => (state.textContent = `Live: ${agent}`),
    onReconnect: () => (state.textContent = 'Connection lost, coming back'),
    onError: (error) => (state.textContent = `Refused: ${error.message}`),
  })
}

async function verify(publicKey) {
  verdict.textContent = 'Checking'
  const result = await client.verify(await client.exportStrand({ agent }), {
    ...(publicKey === '' ? {} : { publicKey }),
    onProgress: (records) => (verdict.textContent = `Checking, ${records} records so far`),
  })
  if (!result.ok) {
    verdict.textContent = `Found wrong at line ${result.line}: ${result.reason}`
    return
  }
  const trust = publicKey === '' ? 'against itself only, as no key was given' : 'under the key given'
  verdict.textContent =
    `${result.records} records hold ${trust}: ${result.signaturesChecked} signatures checked, ` +
    `${result.erased} bodies erased, public key ${result.publicKey}, chain head ${result.chainHead}`
}

connectForm.addEventListener('submit', (event) => {
  event.preventDefault()
  connect(Object.fromEntries(new FormData(connectForm)))
})

verifyForm.addEventListener('submit', (event) => {
  event.preventDefault()
  verify(verifyForm.elements.publicKey.value).catch((error) => (verdict.textContent = error.message))
})
