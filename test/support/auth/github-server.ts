import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** An account of the server. */
export interface GithubUser {
  id: unknown
  emails: unknown
}

/**
 * A fake GitHub server: not an OpenID provider, errors with status 200, an API for the user and the e-mails.
 */
export interface GithubServer {
  url: string
  clientId: string
  clientSecret: string
  /** The user that signs in next. */
  user: GithubUser
  /** Handlers that replace those of the server, by path. */
  faults: Map<string, (response: ServerResponse) => void>
  /** Requested paths, in order. */
  requested: string[]
  stop(): Promise<void>
}

interface Grant {
  challenge: string
  redirectUri: string
  user: GithubUser
}

/** Starts a fake GitHub server on the loopback address. */
export async function startGithubServer(): Promise<GithubServer> {
  const codes = new Map<string, Grant>()
  const tokens = new Map<string, GithubUser>()
  const github: GithubServer = {
    url: '',
    clientId: 'Iv1.0123456789abcdef',
    clientSecret: 'github-secret',
    user: { id: 1, emails: [] },
    faults: new Map(),
    requested: [],
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://127.0.0.1')
    github.requested.push(url.pathname)
    const fault = github.faults.get(url.pathname)
    if (fault !== undefined) fault(response)
    else if (url.pathname === '/login/oauth/authorize') authorize(url, response)
    else if (url.pathname === '/login/oauth/access_token') void redeem(request, response)
    else api(url.pathname, request, response)
  })

  function authorize({ searchParams }: URL, response: ServerResponse): void {
    const redirectUri = searchParams.get('redirect_uri') ?? ''
    const isValid =
      searchParams.get('client_id') === github.clientId &&
      searchParams.get('scope') === 'user:email' &&
      searchParams.get('code_challenge_method') === 'S256'
    const code = randomBytes(10).toString('hex')
    codes.set(code, {
      challenge: searchParams.get('code_challenge') ?? '',
      redirectUri,
      user: github.user,
    })
    const back = new URL(redirectUri)
    back.searchParams.set('code', isValid ? code : '')
    back.searchParams.set('state', searchParams.get('state') ?? '')
    response.writeHead(302, { location: back.href }).end()
  }

  async function redeem(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await textOf(request))
    const grant = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isClient =
      form.get('client_id') === github.clientId && form.get('client_secret') === github.clientSecret
    const isValid =
      isClient && grant?.challenge === challenge && grant.redirectUri === form.get('redirect_uri')
    if (!isValid) {
      answer(response, {
        error: 'bad_verification_code',
        error_description: 'The code is incorrect or expired.',
      })
      return
    }
    const token = `gho_${randomBytes(18).toString('hex')}`
    tokens.set(token, grant.user)
    answer(response, { access_token: token, token_type: 'bearer', scope: 'user:email' })
  }

  function api(path: string, request: IncomingMessage, response: ServerResponse): void {
    const user = tokens.get(request.headers.authorization?.replace('Bearer ', '') ?? '')
    if (user === undefined) answer(response, { message: 'Bad credentials' }, 401)
    else if (path === '/api/v3/user') answer(response, { id: user.id, login: 'ada', email: null })
    else if (path === '/api/v3/user/emails') answer(response, user.emails)
    else answer(response, { message: 'Not Found' }, 404)
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  github.url = `http://127.0.0.1:${address.port}`
  return github
}

function answer(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of request) text += String(part)
  return text
}
