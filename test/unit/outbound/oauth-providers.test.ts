import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { createLogger } from '../../../src/base/log.js'
import { oauthProviders } from '../../../src/outbound/oauth-providers.js'
import { eventually } from '../../support/eventually.js'

let server: Server | undefined

afterEach(async () => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
})

/** The providers of a server with the given listener, and their log lines. */
async function providersOf(listener: RequestListener, requestMs: number) {
  server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  const url = `http://127.0.0.1:${address.port}`
  const lines: string[] = []
  const log = createLogger('info', 'test', { write: (line: string) => void lines.push(line) })
  const client = { clientId: 'id', clientSecret: 'the secret' }
  const settings = { google: { ...client, issuerUrl: url }, github: { ...client, baseUrl: url, apiUrl: url } }
  const providers = oauthProviders(settings, { clock: Date.now, log, requestMs })
  const [google, github] = [providers.get('google'), providers.get('github')]
  if (google === undefined || github === undefined) throw new Error('Expected both providers')
  return { google, github, lines }
}

const start = { state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43), callbackUrl: 'http://127.0.0.1/cb' }
const back = { ...start, query: new URLSearchParams({ state: 's', code: 'the code' }) }
const unavailable = { error: 'temporarily_unavailable' }

it('stops waiting for a provider that does not answer, or not completely', async () => {
  const silent = await providersOf(() => undefined, 50)
  expect(await silent.google.authorizationUrl(start)).toMatchObject(unavailable)
  expect(await silent.github.identify(back)).toMatchObject(unavailable)
  const halting = await providersOf((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{')
  }, 50)
  expect(await halting.github.identify(back)).toMatchObject(unavailable)
})

it('logs a failure with the name of the provider, without secrets', async () => {
  const { github, lines } = await providersOf(
    (_request, response) => response.writeHead(400).end('{}'),
    5_000,
  )
  expect(await github.identify(back)).toMatchObject({ error: 'server_error' })
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 'warn', provider: 'github' }])
  expect(lines.join()).not.toMatch(/the secret|the code|vvvvv/)
})

it('logs nothing when a user declines', async () => {
  const { github, lines } = await providersOf((_request, response) => response.end(), 5_000)
  const query = new URLSearchParams({ state: 's', error: 'access_denied' })
  expect(await github.identify({ ...back, query })).toMatchObject({ error: 'access_denied' })
  expect(lines).toEqual([])
})

it('refuses sign-ins beyond the limit of waiting ones, until these have finished', async () => {
  let answered = false
  const waiting: (() => void)[] = []
  const { github } = await providersOf((_request, response) => {
    const answer = () => response.writeHead(503).end()
    if (answered) answer()
    else waiting.push(answer)
  }, 60_000)
  const first = Array.from({ length: 256 }, () => github.identify(back))
  expect(await github.identify(back)).toEqual({ ...unavailable, reason: 'Too many sign-ins are waiting' })
  await eventually(() => waiting.length === 256)
  answered = true
  for (const answer of waiting) answer()
  await Promise.all(first)
  expect(await github.identify(back)).not.toMatchObject({ reason: 'Too many sign-ins are waiting' })
})
