/**
 * An OpenID provider in a separate process: it listens on the given port, and users sign in and consent as
 * with real providers. It reads its accounts as lines of JSON from standard input.
 */
import { createInterface } from 'node:readline'
import { Provider } from 'oidc-provider'

const [port, clientId, clientSecret, authMethod] = process.argv.slice(2)

/** Subject → claims. */
const accounts = new Map()

let provider

function start(redirectUris) {
  provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: redirectUris,
        token_endpoint_auth_method: authMethod,
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    findAccount: (_context, id) =>
      accounts.has(id) ? { accountId: id, claims: () => ({ sub: id, ...accounts.get(id) }) } : undefined,
    features: { devInteractions: { enabled: true } },
    pkce: { required: () => true },
    cookies: { keys: ['test'] },
    ttl: { Session: 600, Interaction: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
  })
  provider.listen(Number(port), '127.0.0.1', () => process.stdout.write('"listening"\n'))
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { redirectUris, sub, claims } = JSON.parse(line)
  if (redirectUris !== undefined) start(redirectUris)
  else {
    accounts.set(sub, claims)
    process.stdout.write(`${JSON.stringify({ sub })}\n`)
  }
})
