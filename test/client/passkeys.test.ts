import { afterEach, describe, expect, it, vi } from 'vitest'
import { fromBase64Url, toBase64Url } from '../../src/client/passkeys.js'
import { ServiceClient } from '../../src/client/index.js'
import { type Answer, type ScriptedServer, answerJson, startScriptedServer } from './scripted-server.js'

let server: ScriptedServer | undefined

afterEach(async () => {
  vi.unstubAllGlobals()
  await server?.stop()
  server = undefined
})

const tokens = { token: 'jwt-2', refresh_token: 'refresh-2', token_type: 'Bearer', expires_in: 3_600 }
const creation = {
  session_token: 'session-1',
  creation_options: {
    rp: { id: 'example.org', name: 'Test' },
    user: { id: 'AQI', name: 'ada', displayName: 'ada' },
    challenge: '__79',
    excludeCredentials: [{ id: 'Cg', type: 'public-key', transports: ['usb'] }],
  },
}
const request = {
  session_token: 'session-2',
  request_options: {
    rpId: 'example.org',
    challenge: '__79',
    allowCredentials: [{ id: 'Cg', type: 'public-key' }],
  },
}

async function clientOf(...answers: Answer[]) {
  server = await startScriptedServer(...answers)
  const { auth } = new ServiceClient({ url: server.url })
  auth.setSession({ token: 'jwt-1', refresh_token: 'refresh-1' })
  const sent = () => (server?.received ?? []).map(({ method, url, body }) => `${method} ${url} ${body}`)
  return { auth, sent }
}

const bytes = (...values: number[]) => Uint8Array.from(values).buffer

/** Replaces the browser's credentials. @returns the options of the calls */
function stubCredentials(given: { create?: unknown; get?: unknown }) {
  const calls: CredentialCreationOptions[] = []
  const answer = (result: unknown) => async (options: CredentialCreationOptions) => {
    calls.push(options)
    return result
  }
  vi.stubGlobal('navigator', { credentials: { create: answer(given.create), get: answer(given.get) } })
  vi.stubGlobal('PublicKeyCredential', () => undefined)
  return calls
}

describe('base64url', () => {
  it.each([
    ['', []],
    ['_w', [255]],
    ['-_8', [251, 255]],
    ['AAEC', [0, 1, 2]],
  ])('%j encodes the bytes %j, and decodes to them', (text, values) => {
    expect([...fromBase64Url(text)]).toEqual(values)
    expect(toBase64Url(bytes(...values))).toBe(text)
  })
})

describe('the passkeys of the auth client', () => {
  it('register with the browser, even if its credential has another class', async () => {
    const { auth, sent } = await clientOf(answerJson(creation), answerJson({ verified: true }))
    const response = { clientDataJSON: bytes(1), attestationObject: bytes(2), getTransports: () => ['usb'] }
    const calls = stubCredentials({ create: { rawId: bytes(10), response } })
    expect(await auth.passkeys.register()).toEqual({ verified: true })
    const { publicKey } = calls[0] ?? {}
    expect(publicKey?.challenge).toEqual(Uint8Array.of(255, 254, 253))
    expect(publicKey?.user.id).toEqual(Uint8Array.of(1, 2))
    const excluded = { id: Uint8Array.of(10), type: 'public-key', transports: ['usb'] }
    expect(publicKey?.excludeCredentials).toEqual([excluded])
    const registration = {
      id: 'Cg',
      rawId: 'Cg',
      type: 'public-key',
      clientExtensionResults: {},
      response: { clientDataJSON: 'AQ', attestationObject: 'Ag', transports: ['usb'] },
    }
    const body = JSON.stringify({ session_token: 'session-1', registration })
    expect(sent()).toEqual([
      'POST /v1/auth/passkey/register-challenge ',
      `POST /v1/auth/passkey/register ${body}`,
    ])
  })

  it('sign in with or without an e-mail, and set the new session', async () => {
    const { user_id, ...open } = { user_id: 'usr_1', ...request.request_options, allowCredentials: undefined }
    const any = { ...request, request_options: open }
    const { auth, sent } = await clientOf(
      answerJson(request),
      answerJson(tokens),
      answerJson(any),
      answerJson({ ...tokens, token: 'jwt-3' }),
    )
    const response = { clientDataJSON: bytes(1), authenticatorData: bytes(2), signature: bytes(3) }
    const userHandle = new TextEncoder().encode(user_id).buffer
    const calls = stubCredentials({ get: { rawId: bytes(10), response: { ...response, userHandle } } })
    expect(await auth.passkeys.signIn('ada@example.org')).toEqual(tokens)
    expect(auth.session).toMatchObject({ token: 'jwt-2' })
    await auth.passkeys.signIn()
    expect(auth.session).toMatchObject({ token: 'jwt-3' })
    const [named, unnamed] = calls.map(({ publicKey }) => publicKey)
    expect(named).toMatchObject({ allowCredentials: [{ id: Uint8Array.of(10), type: 'public-key' }] })
    expect(unnamed).not.toHaveProperty('allowCredentials')
    const assertion = {
      id: 'Cg',
      rawId: 'Cg',
      type: 'public-key',
      clientExtensionResults: {},
      response: { clientDataJSON: 'AQ', authenticatorData: 'Ag', signature: 'Aw', userHandle: 'dXNyXzE' },
    }
    const body = JSON.stringify({ session_token: 'session-2', assertion })
    expect(sent()).toEqual([
      'POST /v1/auth/passkey/authenticate-challenge {"email":"ada@example.org"}',
      `POST /v1/auth/passkey/authenticate ${body}`,
      'POST /v1/auth/passkey/authenticate-challenge {}',
      `POST /v1/auth/passkey/authenticate ${body}`,
    ])
  })

  it('reject without a request on a platform without passkeys', async () => {
    const { auth, sent } = await clientOf()
    for (const call of [auth.passkeys.register(), auth.passkeys.signIn()]) {
      await expect(call).rejects.toMatchObject({ status: 0, code: 'passkeys_not_supported' })
    }
    expect(sent()).toEqual([])
  })

  it('reject with the error of the browser when the user declines, and send nothing', async () => {
    const { auth, sent } = await clientOf(answerJson(request))
    const declined = new DOMException('Declined', 'NotAllowedError')
    vi.stubGlobal('navigator', { credentials: { get: () => Promise.reject(declined) } })
    vi.stubGlobal('PublicKeyCredential', () => undefined)
    await expect(auth.passkeys.signIn('ada@example.org')).rejects.toBe(declined)
    expect(sent()).toHaveLength(1)
  })

  it('are listed and deleted by their ids, which cannot lead to another path', async () => {
    const { auth, sent } = await clientOf(
      answerJson({ passkeys: [] }),
      answerJson({ deleted: true, id: 'Cg' }),
    )
    await auth.passkeys.list()
    await auth.passkeys.delete('Cg')
    expect(sent()).toEqual(['GET /v1/auth/passkeys ', 'DELETE /v1/auth/passkeys/Cg '])
    for (const id of ['', '..', 'a/b']) await expect(auth.passkeys.delete(id)).rejects.toThrow(TypeError)
  })
})
