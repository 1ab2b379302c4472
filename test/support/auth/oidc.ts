import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** What an account of the provider says of its owner. */
export interface OidcClaims {
  email?: string
  email_verified?: boolean
}

/** An OpenID provider in a process of its own. */
export interface OidcProcess {
  issuerUrl: string
  /** Makes an account, or changes what one says. */
  account(subject: string, claims: OidcClaims): Promise<void>
  stop(): Promise<void>
}

/** What the provider knows of its one client. */
export interface OidcClient {
  port: number
  clientId: string
  clientSecret: string
  authMethod: 'client_secret_basic' | 'client_secret_post'
  redirectUris: readonly string[]
}

/** Starts a real OpenID provider on a port of loopback. */
export async function startOidcProcess(client: OidcClient): Promise<OidcProcess> {
  const { port, clientId, clientSecret, authMethod, redirectUris } = client
  const file = join(import.meta.dirname, 'oidc-process.mjs')
  const args = [file, String(port), clientId, clientSecret, authMethod]
  // Its warnings about what it is not tested with say nothing of what is tested here.
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const tell = async (message: unknown) => {
    child.stdin.write(`${JSON.stringify(message)}\n`)
    const { value, done } = await lines.next()
    if (done === true) throw new Error('The OpenID provider has ended')
    return String(value)
  }
  if ((await tell({ redirectUris })) !== '"listening"') throw new Error('Expected it to listen')
  return {
    issuerUrl: `http://127.0.0.1:${port}`,
    async account(subject, claims) {
      await tell({ sub: subject, claims })
    },
    async stop() {
      child.kill()
      await exited
    },
  }
}
