import { clearAccount, showAccount, showPasskeys } from './account.js'
import { addressOf, comeBack, connect, leaveFor, settingsOf, tidied } from './service.js'
import { inWords } from './words.js'

const element = (id) => document.getElementById(id)

let settings = settingsOf(location.href)
let auth
let stopListening = () => {}

/** Runs the action of a button or of the page, and shows the result. The button is disabled while the action runs. */
async function act(button, action) {
  if (button) {
    button.disabled = true
    element('problem').textContent = ''
  }
  try {
    const message = await action()
    if (message !== undefined) element('state').textContent = message
  } catch (error) {
    element('problem').textContent = inWords(error)
  } finally {
    if (button) button.disabled = false
    // A disabled button loses the focus, which keyboard users need.
    if (document.activeElement === document.body && button?.isConnected) button.focus()
  }
}

/** Calls `action` with the fields of a form and the value of the button that submitted it. */
function onSubmit(id, action) {
  const form = element(id)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const button = event.submitter ?? form.querySelector('button')
    act(button, () => action(Object.fromEntries(new FormData(form)), button.value))
  })
}

/** Shows one of the two halves of the page. If the halves are switched, the focus moves to the new one. */
function showHalf(isSignedIn) {
  const shown = element(isSignedIn ? 'signed-in' : 'signed-out')
  const other = element(isSignedIn ? 'signed-out' : 'signed-in')
  const isChange = !other.hidden
  other.hidden = true
  shown.hidden = false
  element('verify-details').hidden = false
  if (!isSignedIn) clearAccount()
  if (isChange) shown.querySelector('h2').focus()
}

/** Shows the signed-in user, or the ways to sign in. */
async function showSession() {
  showHalf(auth.session !== undefined)
  if (auth.session === undefined) return 'You are not signed in.'
  // Entered passwords and tokens are no longer needed.
  for (const form of element('signed-out').querySelectorAll('form')) form.reset()
  const { email } = await showAccount(auth, act)
  return `Signed in as ${email}.`
}

/** Uses the service and the organism of the settings. @throws TypeError if they are invalid */
function open(wanted) {
  const next = connect(wanted)
  stopListening()
  settings = wanted
  auth = next
  // Any call can detect that the service has ended the session.
  stopListening = auth.onSessionChange((session) => {
    if (session !== undefined) return
    showHalf(false)
    element('state').textContent = 'You are not signed in.'
  })
}

/** Fills in the token of a mailed link; it is used when the user presses the button. */
function takeLink(results) {
  const link = results.get('magic-link')
  const proof = results.get('verify-email')
  if (link !== null) fillIn('link-take', link)
  if (proof !== null) fillIn('verify-take', proof)
}

function fillIn(form, token) {
  element('verify-details').open ||= form === 'verify-take'
  element(form).elements.token.value = token
  element(form).querySelector('button').focus()
}

/** The token in a link, or the text itself. */
function tokenIn(text) {
  const trimmed = text.trim()
  return URL.canParse(trimmed) ? (new URL(trimmed).searchParams.get('token') ?? '') : trimmed
}

/** The message about a mail. Fills in the token if the service returns it instead of mailing it. */
function sentWords({ sent, token }, email, form) {
  if (token !== undefined) {
    fillIn(form, token)
    return 'This service sends no mail: the token is filled in.'
  }
  return sent ? `A mail with a link is on its way to ${email}.` : 'This service sends no mail.'
}

onSubmit('service', async ({ url, organism }) => {
  open(tidied({ url, organism }))
  history.replaceState(history.state, '', addressOf(settings))
  return showSession()
})

onSubmit('password', async ({ email, password }, action) => {
  if (action !== 'register') {
    await auth.login({ email, password })
    return showSession()
  }
  const { token } = await auth.register({ email, password })
  if (token !== null) return showSession()
  element('verify-details').open = true
  return `Confirm your address by the link mailed to ${email}, then sign in.`
})

onSubmit('link-send', async ({ email }) => sentWords(await auth.magicLink.send(email), email, 'link-take'))

onSubmit('link-take', async ({ token }) => {
  await auth.magicLink.verify(tokenIn(token))
  return showSession()
})

onSubmit('provider', async (_fields, provider) => leaveFor(provider, auth, settings))

onSubmit('passkey', async ({ email }) => {
  await auth.passkeys.signIn(email === '' ? undefined : email)
  return showSession()
})

onSubmit('verify-send', async ({ email }) =>
  sentWords(await auth.sendVerifyEmail(email), email, 'verify-take'),
)

onSubmit('verify-take', async ({ token }) => {
  const { email } = await auth.verifyEmail(tokenIn(token))
  if (auth.session !== undefined) await showAccount(auth, act)
  return `The address ${email} is confirmed.`
})

onSubmit('metadata', async ({ metadata }) => {
  await auth.updateUserMetadata(JSON.parse(metadata))
  return 'Saved. New tokens contain it.'
})

onSubmit('passkey-add', async () => {
  await auth.passkeys.register()
  await showPasskeys(auth, act)
  return 'The passkey was added. You can sign in with it.'
})

onSubmit('sign-out', async (_fields, scope) => {
  await auth.logout({ scope })
  return showSession()
})

/** Uses the parameters in the page's address, and removes them from the address bar. */
function useAddress() {
  try {
    open(settings)
    comeBack(auth, settings)
  } finally {
    history.replaceState(history.state, '', addressOf(settings))
  }
}

async function start() {
  for (const name of ['url', 'organism']) element('service').elements[name].value = settings[name]
  const results = new URLSearchParams(location.hash.slice(1))
  await act(undefined, useAddress)
  if (auth === undefined) return
  await act(undefined, showSession)
  takeLink(results)
}

start()
