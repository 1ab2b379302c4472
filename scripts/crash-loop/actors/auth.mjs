import { between, pick } from '../seeded-random.mjs'
import { send } from '../request.mjs'

/** Sessions that are looked at after one crash, beside those that the load touched last. */
const SESSIONS_LOOKED_AT = 10
/** Sessions that one user has at most: far below where the server ends the oldest. */
const SESSIONS_OF_USER = 12
/** How long after its exchange a refresh token answers the same successor, milliseconds. */
const REFRESH_REPEAT_MS = 10_000
/** Links that are asked for one user: further ones get no audit record of their own. */
const LINKS_OF_USER = 4

/**
 * @typedef {{email: string, userId: string, password?: string, number: number, deleted: boolean}} User
 * @typedef {{user: User, token: string, refreshes: string[], revoked: string[], ended: boolean}} Session
 */

/**
 * One thing that an actor does.
 * @typedef {object} Step
 * @property {string} name
 * @property {{method: string, path: string, body?: object, token?: string}} request
 * @property {string} [expected] the answer, as `200` or `401 refresh_reused`
 * @property {string[]} audits the types of the audit records that it leaves
 * @property {(body: any, audits: import('./audits.mjs').Audit[]) => void} done notes that it was carried out; there is
 * no body if its answer was cut off
 * @property {boolean} [repeated] whether it is sent again, with the same result, when its answer was cut off
 * @property {() => void} [late] notes that it was sent again too late to have the same result
 */

/**
 * A few people who register, sign in, refresh, log out and revoke, one call at a time, and what has to hold of that
 * after a crash. Whether a call whose answer was cut off was carried out is what the audit records say, which are of the
 * same transaction: everything else has to agree with them.
 */
export class AuthActor {
  /** What is wrong. @type {string[]} */
  faults = []
  #name
  #random = () => 0
  #made = 0
  /** @type {Map<string, User>} */
  #users = new Map()
  /** @type {Session[]} */
  #sessions = []
  /** @type {{email: string, token: string, used: boolean}[]} */
  #links = []
  /** Links asked for, by e-mail. @type {Map<string, number>} */
  #asked = new Map()
  /** @type {Set<Session>} */
  #touched = new Set()
  /** @type {{id: string, step: Step}[]} */
  #answered = []
  /** @type {{id: string, step: Step, sentAtMs: number} | undefined} */
  #underWay

  /** @param {string} name is part of e-mails and ids of requests */
  constructor(name) {
    this.#name = name
  }

  /** E-mails of users that are there. */
  get emails() {
    return [...this.#users.values()].filter(({ deleted }) => !deleted).map(({ email }) => email)
  }

  /** Begins a round. @param {() => number} random */
  begin(random) {
    this.#random = random
    this.#answered = []
    this.#touched.clear()
  }

  /** Makes one call; rejects when the server goes before it is answered. @param {string} url */
  async act(url) {
    const step = this.#draw()
    const id = `${this.#name}-${this.#made++}`
    this.#underWay = { id, step, sentAtMs: Date.now() }
    const answer = await call(url, step, id)
    this.#underWay = undefined
    if (outcomeOf(answer) !== (step.expected ?? '200')) {
      if (answer.status !== 503) this.#fault(step, `was answered ${outcomeOf(answer)}`)
      return
    }
    this.#answered.push({ id, step })
    step.done(answer.body, [])
  }

  /**
   * Looks at what a crash has left.
   * @param {string} url
   * @param {{audits: import('./audits.mjs').Audits, users: Map<string, any>, whole: boolean}} about all audit records
   *   and users that there are; whole: everything is looked at, not only what was touched
   */
  async check(url, { audits, users, whole }) {
    for (const { id, step } of this.#answered) {
      if (typesOf(audits.of(id)) !== step.audits.join())
        this.#fault(step, `was answered, and its audit records are "${typesOf(audits.of(id))}"`)
    }
    await this.#settle(url, audits)
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

  /** Finds out whether the call whose answer was cut off was carried out. */
  async #settle(url, audits) {
    if (this.#underWay === undefined) return
    const { id, step, sentAtMs } = this.#underWay
    this.#underWay = undefined
    const carried = audits.of(id)
    if (step.repeated) {
      const answer = await call(url, step, `${id}-again`)
      const isLate = Date.now() - sentAtMs > REFRESH_REPEAT_MS
      if (outcomeOf(answer) === '200') step.done(answer.body, [])
      else if (isLate && outcomeOf(answer) === '401 refresh_reused') step.late?.()
      else this.#fault(step, `was cut off, and sent again answered ${outcomeOf(answer)}`)
    } else if (carried.length > 0) {
      if (typesOf(carried) !== step.audits.join())
        this.#fault(step, `was cut off, and has the audit records "${typesOf(carried)}"`)
      step.done(undefined, carried)
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
    const over = session.ended || user.deleted
    const me = { method: 'GET', path: '/v1/auth/me' }
    for (const revoked of session.revoked)
      await this.#expect(url, { ...me, token: revoked }, '401 token_revoked')
    if (!session.revoked.includes(token))
      await this.#expect(url, { ...me, token }, over ? '401 token_revoked' : '200')
    const body = { refresh_token: refreshes.at(-1) }
    const request = { method: 'POST', path: '/v1/auth/refresh', body }
    const renewed = await this.#expect(url, request, over ? '401 refresh_invalid' : '200')
    if (renewed.status === 200) take(session, renewed.body)
  }

  /** A user with a password can still sign in with it, and a deleted one cannot. */
  async #logIn(url) {
    const users = [...this.#users.values()].filter(({ password }) => password !== undefined)
    const there = users.filter(({ deleted }) => !deleted).at(-1)
    for (const user of [there, users.find(({ deleted }) => deleted)]) {
      if (user === undefined || this.#sessionsOf(user).length >= SESSIONS_OF_USER) continue
      const body = { email: user.email, password: user.password }
      const expected = user.deleted ? '401 invalid_credentials' : '200'
      const answer = await this.#expect(url, { method: 'POST', path: '/v1/auth/login', body }, expected)
      if (answer.status === 200) this.#enter(user, answer.body)
      // Once, or failures add up to a lockout.
      if (user.deleted) delete user.password
    }
  }

  async #expect(url, request, expected) {
    const answer = await call(url, { request }, `${this.#name}-look`)
    if (outcomeOf(answer) !== expected)
      this.faults.push(
        `${request.method} ${request.path} of ${this.#name} was answered ${outcomeOf(answer)}, not ${expected}`,
      )
    return answer
  }

  /** @returns {Step} */
  #draw() {
    const dice = this.#random()
    const session = this.#openSession()
    if (dice < 0.06) return this.#register()
    // Links need no password, so there is soon a user who can do more.
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
      done: (answer, [audit]) => this.#enter(this.#add(user, answer?.user_id ?? audit?.userId), answer),
    }
  }

  #login(user) {
    const { email, password } = user
    if (password === undefined || this.#sessionsOf(user).length >= SESSIONS_OF_USER) return undefined
    return {
      name: `login ${email}`,
      request: { method: 'POST', path: '/v1/auth/login', body: { email, password } },
      audits: ['auth/login'],
      done: (answer) => this.#enter(user, answer),
    }
  }

  /** Has a link sent, or uses one that was: for a new user, or one that is there. */
  #link() {
    const link = this.#links.find(({ used, email }) => !used && this.#users.get(email)?.deleted !== true)
    if (link !== undefined) return this.#useLink(link)
    const known = [...this.#users.values()].filter(
      (user) =>
        !user.deleted &&
        this.#sessionsOf(user).length < SESSIONS_OF_USER &&
        (this.#asked.get(user.email) ?? 0) < LINKS_OF_USER,
    )
    const { email } = known.length > 0 && this.#random() < 0.5 ? pick(this.#random, known) : this.#newUser()
    this.#asked.set(email, (this.#asked.get(email) ?? 0) + 1)
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
        const whose = user ?? this.#add({ email: link.email, number: 0, deleted: false }, userId)
        this.#enter(whose, answer)
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
      done: (answer) => take(session, answer),
      repeated: true,
      late: () => (session.ended = true),
    }
  }

  /** A refresh token that was used long ago ends the session of whoever has it. */
  #reuse(session) {
    if (session.refreshes.length < 4) return this.#refresh(session)
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
    return { email: `${this.#name}-${this.#made}@example.org`, userId: '', number: 0, deleted: false }
  }

  #add(user, userId) {
    user.userId = userId
    this.#users.set(user.email, user)
    return user
  }

  /** The tokens of a session whose answer was cut off are known to nobody. */
  #enter(user, answer) {
    if (answer === undefined) return
    const session = {
      user,
      token: answer.token,
      refreshes: [answer.refresh_token],
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

function take(session, { token, refresh_token: refreshToken }) {
  session.token = token
  session.refreshes.push(refreshToken)
}

/** @param {{request: Step['request']}} step */
function call(url, { request: { method, path, body, token } }, requestId) {
  const headers = {
    // Audit records name requests by ids of the server; the user agent is what they contain of the caller.
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
