import { between, pick } from '../seeded-random.mjs'
import { send } from '../request.mjs'

/** Sessions that are checked after a crash, beside those of the latest calls. */
const SESSIONS_LOOKED_AT = 10
/** The maximum of sessions of a user: far below the limit at which the server ends the oldest. */
const SESSIONS_OF_USER = 12
/** How long an exchanged refresh token returns the same successor, milliseconds. */
const REFRESH_REPEAT_MS = 10_000
/** The maximum of links per user: further ones get no audit record. */
const LINKS_OF_USER = 4

/**
 * @typedef {{email: string, userId: string, password?: string, number: number, deleted: boolean}} User
 * @typedef {{user: User, token: string, refreshes: string[], exchangedAtMs: number, revoked: string[], ended: boolean}} Session
 */

/**
 * A step of an actor.
 * @typedef {object} Step
 * @property {string} name
 * @property {{method: string, path: string, body?: object, token?: string}} request
 * @property {string} [expected] the answer, as `200` or `401 refresh_reused`
 * @property {string[]} audits the types of its audit records
 * @property {(body: any, audits: import('./audits.mjs').Audit[]) => void} done records that it was executed;
 * without body if its answer was interrupted
 * @property {boolean} [repeated] whether it is repeated, with the same result, after an interrupted answer
 * @property {() => void} [late] records that it was repeated too late for the same result
 */

/**
 * Users that register, sign in, refresh, log out and revoke, one call at a time, with the expected state
 * after a crash. Audit records, which are in the same transaction, show whether a call with an interrupted
 * answer was executed; everything else must agree with them.
 */
export class AuthActor {
  /** The faults so far. @type {string[]} */
  faults = []
  #name
  #random = () => 0
  #created = 0
  /** @type {Map<string, User>} */
  #users = new Map()
  /** @type {Session[]} */
  #sessions = []
  /** @type {{email: string, token: string, used: boolean}[]} */
  #links = []
  /** The number of requested links, by e-mail. @type {Map<string, number>} */
  #linkRequests = new Map()
  /** @type {Set<Session>} */
  #touched = new Set()
  /** @type {{id: string, step: Step}[]} */
  #answered = []
  /** @type {{id: string, step: Step, sentAtMs: number} | undefined} */
  #pending

  /** @param {string} name is part of e-mails and ids of requests */
  constructor(name) {
    this.#name = name
  }

  /** E-mails of existing users. */
  get emails() {
    return [...this.#users.values()].filter(({ deleted }) => !deleted).map(({ email }) => email)
  }

  /** Begins a round. @param {() => number} random */
  begin(random) {
    this.#random = random
    this.#answered = []
    this.#touched.clear()
  }

  /** Makes a call; rejects if the server ends before its answer. @param {string} url */
  async act(url) {
    const step = this.#draw()
    const id = `${this.#name}-${this.#created++}`
    this.#pending = { id, step, sentAtMs: Date.now() }
    const answer = await call(url, step, id)
    this.#pending = undefined
    if (outcomeOf(answer) !== (step.expected ?? '200')) {
      if (answer.status !== 503) this.#fault(step, `returned ${outcomeOf(answer)}`)
      return
    }
    this.#answered.push({ id, step })
    step.done(answer.body, [])
  }

  /**
   * Checks the state after a crash.
   * @param {string} url
   * @param {{audits: import('./audits.mjs').Audits, users: Map<string, any>, whole: boolean}} about all audit
   * records and users; whole: everything is checked, not only the latest changes
   */
  async check(url, { audits, users, whole }) {
    for (const { id, step } of this.#answered) {
      if (typesOf(audits.of(id)) !== step.audits.join())
        this.#fault(step, `was confirmed, but its audit records are "${typesOf(audits.of(id))}"`)
    }
    await this.#resolvePending(url, audits)
    for (const user of this.#users.values()) this.#checkUser(user, users.get(user.email))
    const some = this.#sessions.slice(-SESSIONS_LOOKED_AT)
    const sessions = whole ? this.#sessions : new Set([...some, ...this.#touched])
    for (const session of sessions) await this.#checkSession(url, session)
    for (const link of whole ? this.#links : this.#links.slice(-4)) {
      if (!link.used) continue
      const body = { token: link.token }
      await this.#expect(
        url,
        { method: 'POST', path: '/v1/auth/magic-link/verify', body },
        '401 invalid_token',
      )
    }
    if (whole) await this.#logIn(url)
  }

  /** Determines whether the call with an interrupted answer was executed. */
  async #resolvePending(url, audits) {
    if (this.#pending === undefined) return
    const { id, step, sentAtMs } = this.#pending
    this.#pending = undefined
    const records = audits.of(id)
    if (step.repeated) {
      const answer = await call(url, step, `${id}-again`)
      const isLate = Date.now() - sentAtMs > REFRESH_REPEAT_MS
      if (outcomeOf(answer) === '200') step.done(answer.body, [])
      else if (isLate && outcomeOf(answer) === '401 refresh_reused') step.late?.()
      else this.#fault(step, `was interrupted, and returned ${outcomeOf(answer)} when repeated`)
    } else if (records.length > 0) {
      if (typesOf(records) !== step.audits.join())
        this.#fault(step, `was interrupted, and has the audit records "${typesOf(records)}"`)
      step.done(undefined, records)
    }
  }

  #checkUser(user, shown) {
    const number = user.deleted ? undefined : user.number
    const shows = shown?.user_metadata.number ?? (shown === undefined ? undefined : 0)
    if (shows !== number || (shown !== undefined && shown.user_id !== user.userId))
      this.faults.push(`The user ${user.email} is ${JSON.stringify(shown)}, not of number ${number}`)
  }

  async #checkSession(url, session) {
    const { user, token, refreshes } = session
    const isEnded = session.ended || user.deleted
    const me = { method: 'GET', path: '/v1/auth/me' }
    for (const revoked of session.revoked)
      await this.#expect(url, { ...me, token: revoked }, '401 token_revoked')
    if (!session.revoked.includes(token))
      await this.#expect(url, { ...me, token }, isEnded ? '401 token_revoked' : '200')
    const body = { refresh_token: refreshes.at(-1) }
    const request = { method: 'POST', path: '/v1/auth/refresh', body }
    const renewed = await this.#expect(url, request, isEnded ? '401 refresh_invalid' : '200')
    if (renewed.status === 200) updateTokens(session, renewed.body)
  }

  /** A user can still sign in by password, and a deleted one cannot. */
  async #logIn(url) {
    const users = [...this.#users.values()].filter(({ password }) => password !== undefined)
    const existing = users.filter(({ deleted }) => !deleted).at(-1)
    for (const user of [existing, users.find(({ deleted }) => deleted)]) {
      if (user === undefined || this.#sessionsOf(user).length >= SESSIONS_OF_USER) continue
      const body = { email: user.email, password: user.password }
      const expected = user.deleted ? '401 invalid_credentials' : '200'
      const answer = await this.#expect(url, { method: 'POST', path: '/v1/auth/login', body }, expected)
      if (answer.status === 200) this.#addSession(user, answer.body)
      // Only once, because failures add up to a lockout.
      if (user.deleted) delete user.password
    }
  }

  async #expect(url, request, expected) {
    const answer = await call(url, { request }, `${this.#name}-look`)
    if (outcomeOf(answer) !== expected)
      this.faults.push(
        `${request.method} ${request.path} of ${this.#name} returned ${outcomeOf(answer)}, not ${expected}`,
      )
    return answer
  }

  /** @returns {Step} */
  #draw() {
    const dice = this.#random()
    const session = this.#openSession()
    if (dice < 0.06) return this.#register()
    // Links need no password, so a user with a session exists soon.
    if (session === undefined || dice < 0.25) return this.#link()
    if (dice < 0.55) return this.#refresh(session)
    if (dice < 0.65) return this.#logout(session)
    if (dice < 0.75) return this.#revoke(session)
    if (dice < 0.87) return this.#metadata(session)
    if (dice < 0.92) return this.#reuse(session)
    if (dice < 0.95) return this.#delete(session.user)
    return this.#login(session.user) ?? this.#refresh(session)
  }

  #register() {
    const user = this.#newUser()
    user.password = `a password of ${user.email}`
    const body = { email: user.email, password: user.password }
    return {
      name: `register ${user.email}`,
      request: { method: 'POST', path: '/v1/auth/register', body },
      expected: '201',
      audits: ['auth/register'],
      done: (answer, [audit]) => this.#addSession(this.#add(user, answer?.user_id ?? audit?.userId), answer),
    }
  }

  #login(user) {
    const { email, password } = user
    if (password === undefined || this.#sessionsOf(user).length >= SESSIONS_OF_USER) return undefined
    return {
      name: `login ${email}`,
      request: { method: 'POST', path: '/v1/auth/login', body: { email, password } },
      audits: ['auth/login'],
      done: (answer) => this.#addSession(user, answer),
    }
  }

  /** Requests a link, or uses one, for a new or existing user. */
  #link() {
    const link = this.#links.find(({ used, email }) => !used && this.#users.get(email)?.deleted !== true)
    if (link !== undefined) return this.#useLink(link)
    const known = [...this.#users.values()].filter(
      (user) =>
        !user.deleted &&
        this.#sessionsOf(user).length < SESSIONS_OF_USER &&
        (this.#linkRequests.get(user.email) ?? 0) < LINKS_OF_USER,
    )
    const { email } = known.length > 0 && this.#random() < 0.5 ? pick(this.#random, known) : this.#newUser()
    this.#linkRequests.set(email, (this.#linkRequests.get(email) ?? 0) + 1)
    return {
      name: `link for ${email}`,
      request: { method: 'POST', path: '/v1/auth/magic-link/send', body: { email } },
      // For e-mails without an account there is one combined record a minute.
      audits: this.#users.has(email) ? ['auth/magic_link_sent'] : [],
      done: (answer) => {
        if (answer !== undefined) this.#links.push({ email, token: answer.token, used: false })
      },
    }
  }

  #useLink(link) {
    const user = this.#users.get(link.email)
    return {
      name: `use of the link for ${link.email}`,
      request: { method: 'POST', path: '/v1/auth/magic-link/verify', body: { token: link.token } },
      audits: [...(user === undefined ? ['auth/register'] : []), 'auth/magic_link_login'],
      done: (answer, [audit]) => {
        link.used = true
        const userId = answer?.user_id ?? audit?.userId
        const owner = user ?? this.#add({ email: link.email, number: 0, deleted: false }, userId)
        this.#addSession(owner, answer)
      },
    }
  }

  #refresh(session) {
    return {
      name: `refresh of ${session.user.email}`,
      request: {
        method: 'POST',
        path: '/v1/auth/refresh',
        body: { refresh_token: session.refreshes.at(-1) },
      },
      audits: [],
      done: (answer) => updateTokens(session, answer),
      repeated: true,
      late: () => (session.ended = true),
    }
  }

  /** A refresh token that was used long ago ends its session. */
  #reuse(session) {
    const isRepeatable = Date.now() - session.exchangedAtMs <= REFRESH_REPEAT_MS
    if (session.refreshes.length < 4 || isRepeatable) return this.#refresh(session)
    return {
      name: `reuse of a refresh token of ${session.user.email}`,
      request: { method: 'POST', path: '/v1/auth/refresh', body: { refresh_token: session.refreshes[0] } },
      expected: '401 refresh_reused',
      audits: ['auth/refresh_reused'],
      done: () => (session.ended = true),
    }
  }

  #logout(session) {
    return {
      name: `logout of ${session.user.email}`,
      request: { method: 'POST', path: '/v1/auth/logout', token: session.token },
      audits: ['auth/logout'],
      done: () => (session.ended = true),
    }
  }

  #revoke(session) {
    const { token } = session
    return {
      name: `revocation by ${session.user.email}`,
      request: { method: 'POST', path: '/v1/auth/revoke', token },
      audits: ['auth/token_revoked'],
      done: () => session.revoked.push(token),
    }
  }

  #metadata({ user, token }) {
    const number = between(this.#random, 1, 1_000_000)
    const body = { metadata: { number } }
    return {
      name: `metadata of ${user.email}`,
      request: { method: 'PATCH', path: '/v1/auth/me/user-metadata', body, token },
      audits: ['auth/user_metadata_updated'],
      done: () => (user.number = number),
    }
  }

  #delete(user) {
    return {
      name: `deletion of ${user.email}`,
      request: { method: 'DELETE', path: `/v1/auth/users/${encodeURIComponent(user.email)}` },
      audits: ['auth/user_deleted'],
      done: () => (user.deleted = true),
    }
  }

  /** A session whose token works. */
  #openSession() {
    const open = this.#sessions.filter(
      (one) => !one.ended && !one.user.deleted && !one.revoked.includes(one.token),
    )
    if (open.length === 0) return undefined
    const session = pick(this.#random, open)
    this.#touched.add(session)
    return session
  }

  #sessionsOf(user) {
    return this.#sessions.filter((session) => session.user === user && !session.ended)
  }

  /** @returns {User} */
  #newUser() {
    return { email: `${this.#name}-${this.#created}@example.org`, userId: '', number: 0, deleted: false }
  }

  #add(user, userId) {
    user.userId = userId
    this.#users.set(user.email, user)
    return user
  }

  /** The tokens of a session with an interrupted answer are unknown. */
  #addSession(user, answer) {
    if (answer === undefined) return
    const session = {
      user,
      token: answer.token,
      refreshes: [answer.refresh_token],
      exchangedAtMs: Infinity,
      revoked: [],
      ended: false,
    }
    this.#sessions.push(session)
    this.#touched.add(session)
  }

  #fault({ name }, what) {
    this.faults.push(`${name} (${this.#name}) ${what}`)
  }
}

function updateTokens(session, { token, refresh_token: refreshToken }) {
  session.token = token
  // When the first refresh token was exchanged.
  session.exchangedAtMs = Math.min(session.exchangedAtMs, Date.now())
  session.refreshes.push(refreshToken)
}

/** @param {{request: Step['request']}} step */
function call(url, { request: { method, path, body, token } }, requestId) {
  const headers = {
    // Audit records identify requests by ids of the server; the user agent is the only fact of the caller.
    'user-agent': requestId,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
  return send(url, { method, path, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
}

function outcomeOf({ status, body }) {
  return status < 400 ? String(status) : `${status} ${body?.code}`
}

/** @param {import('./audits.mjs').Audit[]} audits */
function typesOf(audits) {
  return audits.map(({ type }) => type).join()
}
