import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** The claims of an account of the provider. */
export interface OidcClaims {
  email?: string
  email_verified?: boolean
}

/** An OpenID provider in a separate process. */
export interface OidcProcess {
  issuerUrl: string
  /** Creates an account, or changes its claims. */
  account(subject: string, claims: OidcClaims): Promise<void>
  stop(): Promise<void>
}

/** The client that is registered with the provider. */
export interface OidcClient {
  port: number
  clientId: string
  clientSecret: string
  authMethod: 'client_secret_basic' | 'client_secret_post'
  redirectUris: readonly string[]
}

/** Starts a real OpenID provider on the loopback address. */
export async function startOidcProcess(client: OidcClient): Promise<OidcProcess> {
  const { port, clientId, clientSecret, authMethod, redirectUris } = client
  const file = join(import.meta.dirname, 'oidc-process.mjs')
  const args = [file, String(port), clientId, clientSecret, authMethod]
  // The warnings of the library about untested configurations are not relevant here.
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const send = async (message: unknown) => {
    child.stdin.write(`${JSON.stringify(message)}\n`)
    const { value, done } = await lines.next()
    if (done === true) throw new Error('The OpenID provider has ended')
    return String(value)
  }
  if ((await send({ redirectUris })) !== '"listening"') throw new Error('The OpenID provider did not start')
  return {
    issuerUrl: `http://127.0.0.1:${port}`,
    async account(subject, claims) {
      await send({ sub: subject, claims })
    },
    async stop() {
      child.kill()
      await exited
    },
  }
}
