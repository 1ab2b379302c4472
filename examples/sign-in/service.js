import { ServiceClient } from 'strandfast/client'

/** Prefix of this page's keys in sessionStorage. */
const NOTES = 'strandfast sign-in'

/**
 * The service and the organism in the page's address: `?url=`, by default the page's origin, and `?organism=`. An application
 * must not take its service from its address, as this example does: an attacker could create a link with which users
 * enter their passwords for the attacker's service.
 */
export function settingsOf(address) {
  const query = new URL(address).searchParams
  return tidied({ url: query.get('url') ?? location.origin, organism: query.get('organism') ?? '' })
}

/** Normalizes entered settings; sessions are stored by these settings. */
export function tidied({ url, organism }) {
  return { url: url.trim().replace(/\/+$/, ''), organism: organism.trim() }
}

/** The page's address with these settings only, to which users return from another service. */
export function addressOf({ url, organism }) {
  const address = new URL(location.pathname, location.origin)
  if (url !== location.origin) address.searchParams.set('url', url)
  if (organism !== '') address.searchParams.set('organism', organism)
  return address.href
}

/**
 * The auth client for these settings, with the session that this tab has stored.
 * @throws TypeError if the address or the id is invalid
 */
export function connect(settings) {
  // The browser navigates to addresses below this one, so schemes such as `javascript:` must be refused.
  if (!/^https?:$/.test(URL.canParse(settings.url) ? new URL(settings.url).protocol : '')) {
    throw new TypeError('Expected the address of a service, as https://records.example')
  }
  const client = new ServiceClient({ url: settings.url })
  const { auth } = settings.organism === '' ? client : client.organism(settings.organism)
  storeSession(auth, noteName('session', settings))
  return auth
}

/**
 * Stores the session, so that it survives a reload of the tab. The costs: every script on this origin, an injected one too, can
 * read and steal the tokens; and a duplicated tab has a copy of the session, whose use the service may treat as theft and end
 * the session. Without storage, the session is lost when the page is left. The safest way is a server of the application that
 * keeps the tokens and gives the browser an HttpOnly cookie.
 */
function storeSession(auth, name) {
  // Stored by service and organism, so that tokens of one are never sent to another.
  const stored = sessionStorage.getItem(name)
  if (stored !== null) auth.setSession(JSON.parse(stored))
  auth.onSessionChange((session) => {
    if (session === undefined) sessionStorage.removeItem(name)
    else sessionStorage.setItem(name, JSON.stringify(session))
  })
}

/** Sends the browser to the provider, and records that this tab started the sign-in. */
export function leaveFor(provider, auth, settings) {
  sessionStorage.setItem(noteName('left', settings), provider)
  const redirectUri = addressOf(settings)
  location.assign(auth.oauth.authorizeUrl(provider, { redirectUri, mode: 'fragment' }))
}

/**
 * Signs in with the tokens in the address if this tab has started the sign-in. Without this check, an attacker's link could sign
 * the user in to the attacker's account, where the attacker could read what the user writes (login CSRF).
 * @returns whether the address contained a sign-in
 * @throws ServiceError if the sign-in failed
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
