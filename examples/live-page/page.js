import { ServiceClient } from 'strandfast/client'

/** Maximum number of rows in the table; older rows are removed. */
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

/** Shows the content of a record as text, never as markup. */
function row(event) {
  const tableRow = document.createElement('tr')
  const time = event.timestamp.toISOString()
  const texts = [event.seq, time, event.type, JSON.stringify(event.payload), event.content_hash.slice(0, 16)]
  tableRow.append(
    ...texts.map((text) => {
      const cell = document.createElement('td')
      cell.textContent = text
      return cell
    }),
  )
  return tableRow
}

function show(event) {
  rows.prepend(row(event))
  while (rows.children.length > ROWS_MAX) rows.lastChild.remove()
}

/** Shows stored records, then new ones. The subscription reconnects automatically when the connection is lost. */
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
    onReconnect: () => (state.textContent = 'Connection lost, reconnecting'),
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
    verdict.textContent = `Invalid at line ${result.line}: ${result.reason}`
    return
  }
  const trust = publicKey === '' ? 'consistent, but no key was given' : 'valid for the given key'
  verdict.textContent =
    `${result.records} records are ${trust}: ${result.signaturesChecked} signatures checked, ` +
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
