import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type AuthSession, NetworkError, ServiceError } from '../../src/client/index.js'
import { eventually } from '../support/eventually.js'
import { type AuthScript, alice, clientOf, deferred, startAuthScript } from './auth-script.js'
import { type Answer, answerJson, answerProblem, cutOff } from './scripted-server.js'

const HOUR_MS = 3_600_000
const HEAD = '/v1/agents/notes/head'

let script: AuthScript

beforeEach(async () => {
  script = await startAuthScript()
})

afterEach(async () => {
  await script.server.stop()
})

/** A client that is signed in with `token-1`. */
async function signedIn(options: Parameters<typeof clientOf>[1] = {}) {
  const created = clientOf(script, options)
  await created.client.auth.login(alice)
  return { ...created, notes: created.client.agent('notes') }
}

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)

/** Delays the answer to the refresh until the test resolves the returned gate. */
function delayedRefresh(answer: Answer = script.giveNext) {
  const gate = deferred()
  script.onRefresh = async (request, response) => {
    await gate.promise
    await answer(request, response)
  }
  return gate
}

describe('a session', () => {
  it('provides the token of data calls after the sign-in', async () => {
    const { client, clocks, notes } = await signedIn()
    await notes.head()
    expect(script.sentTo('/v1/auth/login')).toEqual([undefined])
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-1'])
    expect(client.auth.session).toEqual({
      token: 'token-1',
      refresh_token: 'refresh-1',
      expires_at_ms: clocks.wallMs + HOUR_MS,
    })
  })

  it('is refreshed once for fifty callers that were refused at the same time', async () => {
    const { client, notes } = await signedIn()
    script.newest = 100
    const gate = delayedRefresh()
    const calls = times(50, () => notes.head())
    await eventually(() => script.refused === 50 && script.refreshes() === 1)
    gate.resolve()
    expect(await Promise.all(calls)).toHaveLength(50)
    expect(script.refreshes()).toBe(1)
    const sent = script.sentTo(HEAD)
    expect(sent.filter((header) => header === 'Bearer token-1')).toHaveLength(50)
    expect(sent.filter((header) => header === 'Bearer token-101')).toHaveLength(50)
    expect(client.auth.session?.refresh_token).toBe('refresh-101')
  })

  it('is refreshed once for fifty callers thirty seconds before its token expires, so that none is refused', async () => {
    const { clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS - 30_001
    await notes.head()
    expect(script.refreshes()).toBe(0)
    clocks.monotonicMs += 1
    await Promise.all(times(50, () => notes.head()))
    expect(script.refreshes()).toBe(1)
    expect(script.refused).toBe(0)
    await notes.head()
    expect(script.refreshes()).toBe(1)
  })

  it('is not affected when the wall clock is set', async () => {
    const { clocks, notes } = await signedIn()
    clocks.wallMs += 100 * HOUR_MS
    await notes.head()
    clocks.wallMs -= 200 * HOUR_MS
    await notes.head()
    expect(script.refreshes()).toBe(0)
  })

  it('uses a short-lived token for half its lifetime', async () => {
    const { client, clocks } = clientOf(script)
    const answer = { token: 'token-0', refresh_token: 'refresh-0', token_type: 'Bearer', expires_in: 10 }
    script.giveNext = answerJson(answer)
    await client.auth.login(alice)
    clocks.monotonicMs += 4_999
    await client.agent('notes').head()
    expect(script.refreshes()).toBe(0)
    clocks.monotonicMs += 1
    await client.agent('notes').head()
    expect(script.refreshes()).toBe(1)
  })

  it('is not refreshed again for a caller that is refused after the refresh', async () => {
    const { notes } = await signedIn()
    const late = deferred()
    const slow: Answer = async (request, response) => {
      await late.promise
      await answerProblem(401, 'token_expired')(request, response)
    }
    script.onCall = slow
    const slowCall = notes.head()
    await eventually(() => script.sentTo(HEAD).length === 1)
    script.onCall = answerJson({ seq: 1 })
    script.newest = 7
    await notes.status()
    late.resolve()
    await slowCall
    expect(script.refreshes()).toBe(1)
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-1', 'Bearer token-8'])
  })

  it('repeats a write with its idempotency key and body after a refresh, and also a call that is not repeatable', async () => {
    const { client, notes } = await signedIn()
    script.newest = 7
    await notes.write({ a: 1 })
    const writes = script.server.received.filter(({ url }) => url.endsWith('/records'))
    expect(writes).toHaveLength(2)
    expect(new Set(writes.map(({ body }) => body))).toEqual(new Set(['{"data":{"a":1}}']))
    expect(new Set(writes.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    script.newest = 70
    await client.auth.changePassword({ current_password: 'a', new_password: 'b' })
    expect(script.sentTo('/v1/auth/password/change')).toEqual(['Bearer token-8', 'Bearer token-71'])
  })

  it('does not repeat a streamed upload, but renews the token for the next call', async () => {
    const { client, notes } = await signedIn()
    script.newest = 7
    const upload = client.ingestMany('notes', [{ a: 1 }], { upload: 'stream' })
    await expect(upload).rejects.toMatchObject({ code: 'token_expired' })
    await notes.head()
    expect(script.sentTo('/v1/ingest/notes')).toEqual(['Bearer token-1'])
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-8'])
  })

  it('rejects with the refusal when the renewed token is refused, too', async () => {
    const { client, notes } = await signedIn()
    script.onCall = answerProblem(401, 'token_expired')
    await expect(notes.head()).rejects.toMatchObject({ status: 401, code: 'token_expired' })
    expect(script.refreshes()).toBe(1)
    expect(script.sentTo(HEAD)).toHaveLength(2)
    expect(client.auth.session).toBeDefined()
  })

  it.each(['invalid_token', 'unauthorized'])('is not refreshed after 401 %s', async (code) => {
    const { notes } = await signedIn()
    script.onCall = answerProblem(401, code)
    await expect(notes.head()).rejects.toMatchObject({ code })
    expect(script.refreshes()).toBe(0)
  })

  it('shares a refresh on demand with calls that need it', async () => {
    const { client, clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    const [answer] = await Promise.all([client.auth.refresh(), notes.head(), client.auth.refresh()])
    expect(answer).toMatchObject({ token: 'token-2', token_type: 'Bearer', expires_in: 3_600 })
    expect(script.refreshes()).toBe(1)
    expect(script.server.received.find(({ url }) => url === '/v1/auth/refresh')?.body).toBe(
      '{"refresh_token":"refresh-1"}',
    )
  })

  it('cannot be refreshed when no user is signed in', async () => {
    const { client } = clientOf(script)
    await expect(client.auth.refresh()).rejects.toMatchObject({ code: 'no_session', status: 0 })
    expect(script.server.received).toEqual([])
  })
})

describe('a refresh that fails', () => {
  it.each(['refresh_reused', 'refresh_expired', 'refresh_invalid'])(
    'ends the session with %s for all callers',
    async (code) => {
      const { client, clocks, notes } = await signedIn()
      const onChange = vi.fn()
      client.auth.onSessionChange(onChange)
      clocks.monotonicMs += HOUR_MS
      script.onRefresh = answerProblem(401, code)
      const outcomes = await Promise.allSettled(times(50, () => notes.head()))
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { status: 401, code } })
        expect(outcome.status === 'rejected' && outcome.reason).toBeInstanceOf(ServiceError)
      }
      expect(script.refreshes()).toBe(1)
      expect(client.auth.session).toBeUndefined()
      expect(onChange.mock.calls).toEqual([[undefined]])
      expect(script.sentTo(HEAD)).toEqual([])
    },
  )

  it('does not make calls use the API key until the application removes the session', async () => {
    const { client, clocks, notes } = await signedIn({ apiKey: 'key-1' })
    clocks.monotonicMs += HOUR_MS
    script.onRefresh = answerProblem(401, 'refresh_invalid')
    await expect(notes.head()).rejects.toMatchObject({ code: 'refresh_invalid' })
    await expect(notes.head()).rejects.toMatchObject({ code: 'token_expired' })
    client.auth.setSession(undefined)
    await expect(notes.head()).rejects.toMatchObject({ code: 'token_expired' })
    expect(script.sentTo(HEAD)).toEqual([undefined, 'Bearer key-1'])
  })

  it('keeps the session when the network fails until the call times out', async () => {
    const { client, clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    script.onRefresh = cutOff
    await expect(notes.head()).rejects.toBeInstanceOf(NetworkError)
    expect(script.refreshes()).toBeGreaterThan(5)
    expect(script.sentTo(HEAD)).toEqual([])
    expect(client.auth.session?.token).toBe('token-1')
    script.onRefresh = undefined
    await notes.head()
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-2'])
  })

  it.each([429, 500, 503])('keeps the session after %i', async (status) => {
    const { client, clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    script.onRefresh = answerProblem(status, 'some_code')
    await expect(notes.head()).rejects.toMatchObject({ status })
    expect(client.auth.session?.token).toBe('token-1')
  })

  it('does not fail calls while the token is still valid', async () => {
    const { clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS - 10_000
    script.onRefresh = answerProblem(500, 'internal_error')
    await notes.head()
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-1'])
  })

  it('is repeated with the same refresh token when its answer was lost', async () => {
    const { clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    script.onRefresh = (request, response) => {
      script.onRefresh = undefined
      return cutOff(request, response)
    }
    await notes.head()
    const bodies = script.server.received
      .filter(({ url }) => url === '/v1/auth/refresh')
      .map(({ body }) => body)
    expect(bodies).toEqual(['{"refresh_token":"refresh-1"}', '{"refresh_token":"refresh-1"}'])
  })
})

describe('a caller that aborts', () => {
  it('does not end the refresh for other callers', async () => {
    const { client, clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    const gate = delayedRefresh()
    const controller = new AbortController()
    const first = notes.head({ signal: controller.signal })
    const others = [notes.head(), client.auth.refresh(), client.auth.me()]
    await eventually(() => script.refreshes() === 1)
    controller.abort(new Error('Enough'))
    await expect(first).rejects.toThrow('Enough')
    gate.resolve()
    expect(await Promise.all(others)).toHaveLength(3)
    expect(script.refreshes()).toBe(1)
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-2'])
  })

  it('does not prevent the refresh even when no caller waits any more', async () => {
    const { client, clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    const changed = deferred<AuthSession | undefined>()
    client.auth.onSessionChange(changed.resolve)
    const gate = delayedRefresh()
    const controller = new AbortController()
    const calls = [
      notes.head({ signal: controller.signal }),
      client.auth.refresh({ signal: controller.signal }),
    ]
    await eventually(() => script.refreshes() === 1)
    controller.abort(new Error('Enough'))
    for (const call of calls) await expect(call).rejects.toThrow('Enough')
    gate.resolve()
    expect(await changed.promise).toMatchObject({ token: 'token-2' })
  })

  it('starts no refresh if its signal is aborted already', async () => {
    const { client } = await signedIn()
    const signal = AbortSignal.abort(new Error('Enough'))
    await expect(client.auth.refresh({ signal })).rejects.toThrow('Enough')
    expect(script.refreshes()).toBe(0)
  })
})

describe('a session that changes while it is refreshed', () => {
  it('stays ended when the user has signed out', async () => {
    const { client, clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    const gate = delayedRefresh()
    const call = notes.head()
    await eventually(() => script.refreshes() === 1)
    client.auth.setSession(undefined)
    gate.resolve()
    await call
    expect(client.auth.session).toBeUndefined()
  })

  it('remains that of the next user, and the call is sent for the user who made it', async () => {
    const { client, clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    const gate = delayedRefresh()
    const call = notes.head()
    await eventually(() => script.refreshes() === 1)
    client.auth.setSession({ token: 'of-bob', refresh_token: 'refresh-of-bob' })
    gate.resolve()
    await call
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-2'])
    expect(client.auth.session?.token).toBe('of-bob')
  })

  it('is not ended by a refused refresh of the previous user', async () => {
    const { client, clocks, notes } = await signedIn()
    clocks.monotonicMs += HOUR_MS
    const gate = delayedRefresh(answerProblem(401, 'refresh_invalid'))
    const call = notes.head()
    await eventually(() => script.refreshes() === 1)
    client.auth.setSession({ token: 'of-bob', refresh_token: 'refresh-of-bob' })
    gate.resolve()
    await expect(call).rejects.toMatchObject({ code: 'refresh_invalid' })
    expect(client.auth.session?.token).toBe('of-bob')
  })
})

describe('setSession and onSessionChange', () => {
  it('restore a session after a restart', async () => {
    const { client } = await signedIn()
    const stored = JSON.stringify(client.auth.session)
    const { client: later, clocks } = clientOf(script)
    later.auth.setSession(JSON.parse(stored))
    await later.agent('notes').head()
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-1'])
    clocks.monotonicMs += HOUR_MS - 30_000
    await later.agent('notes').head()
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-1', 'Bearer token-2'])
    expect(script.refused).toBe(0)
  })

  it('refresh a stored session with an expired token before its first call', async () => {
    const { client, clocks } = clientOf(script)
    const expires_at_ms = clocks.wallMs - 1
    client.auth.setSession({ token: 'token-0', refresh_token: 'refresh-0', expires_at_ms })
    await client.agent('notes').head()
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-1'])
  })

  it('use a session without a known expiry until the service refuses it', async () => {
    const { client, clocks } = clientOf(script)
    client.auth.setSession({ token: 'token-0', refresh_token: 'refresh-0' })
    clocks.monotonicMs += 100 * HOUR_MS
    await client.agent('notes').head()
    expect(script.refreshes()).toBe(0)
    script.newest = 7
    await client.agent('notes').head()
    expect(script.sentTo(HEAD)).toEqual(['Bearer token-0', 'Bearer token-0', 'Bearer token-8'])
  })

  it('call a listener once for each change, and not after it was removed', async () => {
    const { client } = clientOf(script)
    const tokens: (string | undefined)[] = []
    const stop = client.auth.onSessionChange((session) => void tokens.push(session?.token))
    await client.auth.login(alice)
    await client.auth.refresh()
    client.auth.setSession({ ...client.auth.session! })
    client.auth.setSession(undefined)
    client.auth.setSession(undefined)
    stop()
    await client.auth.login(alice)
    expect(tokens).toEqual(['token-1', 'token-2', undefined])
  })

  it('leave the error of a listener uncaught without affecting the call or other listeners', async () => {
    const { client } = clientOf(script)
    const onChange = vi.fn()
    client.auth.onSessionChange(() => {
      throw new Error('The disk was removed')
    })
    client.auth.onSessionChange(onChange)
    const usual = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    const uncaught = new Promise((resolve) => process.once('unhandledRejection', resolve))
    try {
      await client.auth.login(alice)
      expect(await uncaught).toEqual(new Error('The disk was removed'))
    } finally {
      for (const listener of usual) process.on('unhandledRejection', listener)
    }
    expect(onChange).toHaveBeenCalledTimes(1)
  })

  it('keep a copy that cannot be changed', () => {
    const { client } = clientOf(script)
    const given = { token: 'a', refresh_token: 'b' }
    client.auth.setSession(given)
    given.token = 'c'
    expect(client.auth.session?.token).toBe('a')
    expect(Object.isFrozen(client.auth.session)).toBe(true)
  })

  it('refuse a session without tokens, and do not quote it', () => {
    const { client } = clientOf(script)
    const half = JSON.parse('{"token":"secret-token"}')
    expect(() => client.auth.setSession(half)).toThrow(
      new TypeError('Expected a session with token and refresh_token'),
    )
    expect(client.auth.session).toBeUndefined()
  })
})

describe('a subscription of a signed-in user', () => {
  it('reconnects with a new token when its stream ends because the token has expired', async () => {
    const { client } = await signedIn()
    const seen = deferred()
    const seqs: number[] = []
    script.onCall = (_request, response) => {
      const seq = script.newest
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`id: c${seq}\nevent: record\ndata: {"seq":${seq},"payload":{}}\n\n`)
      if (seq > 1) return
      script.newest = 7
      response.end()
    }
    const onEvent = ({ seq }: { seq: number }) => {
      seqs.push(seq)
      if (seq === 8) seen.resolve()
    }
    const subscription = client.subscribeAgent('notes', onEvent)
    await seen.promise
    subscription.close()
    expect(seqs).toEqual([1, 8])
    expect(script.sentTo('/v1/agents/notes/stream')).toEqual([
      'Bearer token-1',
      'Bearer token-1',
      'Bearer token-8',
    ])
    expect(script.refreshes()).toBe(1)
  })

  it('ends with the refusal when the session has ended', async () => {
    const { client } = await signedIn()
    script.newest = 7
    script.onRefresh = answerProblem(401, 'refresh_invalid')
    const refused = new Promise((onError) => client.subscribeAgent('notes', () => undefined, { onError }))
    expect(await refused).toMatchObject({ status: 401, code: 'refresh_invalid' })
  })
})

describe('tokens', () => {
  it('are not in any error', async () => {
    const { client, clocks, notes } = await signedIn()
    const cases: (Answer | undefined)[] = [
      cutOff,
      answerProblem(401, 'refresh_invalid'),
      (_request, response) => void response.writeHead(200).end('{"token":"token-1", refresh-1'),
      (_request, response) => void response.writeHead(200).end('token-1'),
    ]
    for (const onRefresh of cases) {
      client.auth.setSession({ token: 'token-1', refresh_token: 'refresh-1' })
      clocks.monotonicMs += HOUR_MS
      script.newest = 7
      script.onRefresh = onRefresh
      const error = await notes.head().catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(ServiceError)
      expect(inspect(error, { depth: null, showHidden: true })).not.toMatch(/token-1|refresh-1/)
    }
  })

  it('are not quoted when they are not valid in a header', async () => {
    const { client } = clientOf(script)
    client.auth.setSession({ token: 'secret\nx: y', refresh_token: 'secret' })
    const error = await client
      .agent('notes')
      .head()
      .catch((thrown: unknown) => thrown)
    expect(error).toEqual(new TypeError('Expected a credential of visible ASCII characters'))
    expect(inspect(error, { depth: null })).not.toContain('secret')
    expect(script.server.received).toEqual([])
  })

  it('are not shown by a client that is printed', async () => {
    const { client } = await signedIn({ apiKey: 'key-1' })
    expect(inspect(client, { depth: null, showHidden: true })).not.toMatch(/token-1|refresh-1|key-1/)
    expect(JSON.stringify(client)).not.toMatch(/token-1|refresh-1|key-1/)
  })
})
