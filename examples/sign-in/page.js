import { clearAccount, showAccount, showPasskeys } from './account.js'
import { addressOf, comeBack, connect, leaveFor, settingsOf, tidied } from './service.js'
import { inWords } from './words.js'

const element = (id) => document.getElementById(id)

let settings = settingsOf(location.href)
let auth
let stopListening = () => {}

/** Runs what a button does, or the page by itself: one click, one try; then says what came of it. */
async function act(button, action) {
  if (button) {
    button.disabled = true
    element('problem').textContent = ''
  }
  try {
    const said = await action()
    if (said !== undefined) element('state').textContent = said
  } catch (error) {
    element('problem').textContent = inWords(error)
  } finally {
    if (button) button.disabled = false
    // A button that was disabled has lost the focus, by which others than mouse users find their way.
    if (document.activeElement === document.body && button?.isConnected) button.focus()
  }
}

/** Calls `action` with the fields of a form and the value of the button that sent it. */
function onSubmit(id, action) {
  const form = element(id)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const button = event.submitter ?? form.querySelector('button')
    act(button, () => action(Object.fromEntries(new FormData(form)), button.value))
  })
}

/** Shows one of the two halves of the page; where it takes the other's place, the focus goes along. */
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

/** Shows who is signed in now, or the ways to sign in. */
async function showSession() {
  showHalf(auth.session !== undefined)
  if (auth.session === undefined) return 'Nobody is signed in.'
  // Passwords and tokens that were typed have served.
  for (const form of element('signed-out').querySelectorAll('form')) form.reset()
  const { email } = await showAccount(auth, act)
  return `Signed in as ${email}.`
}

/** Goes on with the service and the organism of the settings. @throws TypeError when they can be none */
function open(wanted) {
  const next = connect(wanted)
  stopListening()
  settings = wanted
  auth = next
  // Any call can find out that the service has ended the session.
  stopListening = auth.onSessionChange((session) => {
    if (session !== undefined) return
    showHalf(false)
    element('state').textContent = 'Nobody is signed in.'
  })
}

/** Puts what a mailed link brought into its field; the user's button uses it. */
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

/** Of a whole link the token alone. */
function tokenIn(text) {
  const trimmed = text.trim()
  return URL.canParse(trimmed) ? (new URL(trimmed).searchParams.get('token') ?? '') : trimmed
}

/** What to say of a mail, and its token where the service answers it in place of mailing it. */
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

onSubmit('password', async ({ email, password }, way) => {
  if (way !== 'register') {
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
  return 'Saved. Tokens carry it from the next one on.'
})

onSubmit('passkey-add', async () => {
  await auth.passkeys.register()
  await showPasskeys(auth, act)
  return 'The passkey signs you in from now on.'
})

onSubmit('sign-out', async (_fields, scope) => {
  await auth.logout({ scope })
  return showSession()
})

/** Takes up what came with the page's address, none of which stays there. */
function takeUp() {
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
  await act(undefined, takeUp)
  if (auth === undefined) return
  await act(undefined, showSession)
  takeLink(results)
}

start()
