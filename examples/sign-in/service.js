import { ServiceClient } from 'strandfast/client'

/** Notes of this page in sessionStorage begin so. */
const NOTES = 'strandfast sign-in'

/**
 * Which service and which users, from the page's own address: `?url=`, the page's origin unless given, and `?organism=`.
 * An application does not take its service from its address, as this example does: whoever makes such a link could
 * have users type their passwords into a service of his.
 */
export function settingsOf(address) {
  const query = new URL(address).searchParams
  return tidied({ url: query.get('url') ?? location.origin, organism: query.get('organism') ?? '' })
}

/** Settings as they were typed, in the one form that sessions are kept by. */
export function tidied({ url, organism }) {
  return { url: url.trim().replace(/\/+$/, ''), organism: organism.trim() }
}

/** The page's address with these settings and nothing else: what users come back to from another service. */
export function addressOf({ url, organism }) {
  const address = new URL(location.pathname, location.origin)
  if (url !== location.origin) address.searchParams.set('url', url)
  if (organism !== '') address.searchParams.set('organism', organism)
  return address.href
}

/**
 * The auth part of a client for these settings, which goes on with the session that this tab has kept.
 * @throws TypeError when they are no web address, or no id
 */
export function connect(settings) {
  // The browser is sent to addresses below this one, so nothing as `javascript:` may stand there.
  if (!/^https?:$/.test(URL.canParse(settings.url) ? new URL(settings.url).protocol : '')) {
    throw new TypeError('Expected the address of a service, as https://records.example')
  }
  const client = new ServiceClient({ url: settings.url })
  const { auth } = settings.organism === '' ? client : client.organism(settings.organism)
  keepSession(auth, noteName('session', settings))
  return auth
}

/**
 * Keeps the session over a reload of the tab. What that costs: every script that runs on this origin, one that was
 * smuggled in too, can read the tokens there and carry them off; and a tab that is duplicated takes a copy along, whose
 * use beside this one the service can take for theft, upon which it ends the session. Without this the session lives in
 * memory until the page is left. Safer than both: a server of the application's own, which keeps the tokens and gives
 * the browser a cookie that is HttpOnly.
 */
function keepSession(auth, name) {
  // By service and organism: what one of them gave is never sent to another.
  const kept = sessionStorage.getItem(name)
  if (kept !== null) auth.setSession(JSON.parse(kept))
  auth.onSessionChange((session) => {
    if (session === undefined) sessionStorage.removeItem(name)
    else sessionStorage.setItem(name, JSON.stringify(session))
  })
}

/** Sends the browser to another service, and notes that this tab asked for it. */
export function leaveFor(provider, auth, settings) {
  sessionStorage.setItem(noteName('left', settings), provider)
  const redirectUri = addressOf(settings)
  location.assign(auth.oauth.authorizeUrl(provider, { redirectUri, mode: 'fragment' }))
}

/**
 * Signs in by the tokens that another service's user came back with, if this tab had left for it: without that, a link
 * could sign somebody in as somebody else, who then reads what is written under that name.
 * @returns whether somebody came back
 * @throws ServiceError when the sign-in came to nothing
 */
export function comeBack(auth, settings) {
  const name = noteName('left', settings)
  if (sessionStorage.getItem(name) === null) return false
  sessionStorage.removeItem(name)
  return auth.oauth.takeFromFragment() !== undefined
}

function noteName(what, { url, organism }) {
  return `${NOTES} ${what} ${JSON.stringify([url, organism])}`
}
