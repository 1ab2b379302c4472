import { setTimeout as pause } from 'node:timers/promises'
import { type ClusterClient, posting } from './cluster-client.js'
import { type LoadParts, REST_MS } from './writes.js'

const verifyPath = '/v1/auth/magic-link/verify'

/** Magic links that sign in once, whose tokens are then revoked; and API keys, which are deleted. */
export class Sessions {
  /** Tokens of links that were used, or may have been. */
  readonly #used: string[] = []

  async run(parts: LoadParts): Promise<void> {
    await Promise.all([this.#links(parts), keys(parts)])
  }

  /** Checks that used tokens do not work again. @param count number of tokens, the most recent ones */
  async check(client: ClusterClient, count: number): Promise<string[]> {
    const tried = this.#used.slice(-count).map(async (token) => {
      const { status } = await client.insist(posting(verifyPath, { token }))
      return status === 401 ? [] : [`A used token was answered ${status}`]
    })
    return (await Promise.all(tried)).flat()
  }

  async #links({ client, known, prefix, stopped }: LoadParts): Promise<void> {
    for (let n = 0; !stopped(); n++) {
      const email = `${prefix}-${n}@example.org`
      const sent = await client.insist(posting('/v1/auth/magic-link/send', { email }))
      const { token } = sent.body
      // Three requests compete; each is repeated at another node if its answer is lost.
      const rivals = [0, 1, 2].map(() => client.insist(posting(verifyPath, { token })))
      const answers = await Promise.all(rivals)
      for (const { status, body } of answers)
        if (status !== 200 && body?.code !== 'invalid_token')
          known.breaches.push(`A new single-use token was answered ${status} ${body?.code}`)
      const winners = answers.filter(({ status }) => status === 200)
      this.#used.push(token)
      if (winners.length > 1) known.breaches.push(`A single-use token worked ${winners.length} times`)
      const [winner] = winners
      // The answer may have been lost.
      if (winner === undefined) continue
      const { token: key } = winner.body
      let revoked = await client.insist(posting('/v1/auth/revoke', undefined, { key }))
      // If the answer to the first request was lost, the second one finds the token revoked. That is the answer
      // of one node: the others may not know it yet.
      if (revoked.body?.code === 'token_revoked')
        revoked = await client.insist(posting(`/v1/auth/users/${email}/logout`, undefined))
      if (revoked.status === 200) {
        known.revoked.push(key)
        await checkRevoked(client, known, { key, what: 'token' })
      } else known.breaches.push(`A revocation was answered ${revoked.status} ${revoked.body?.code}`)
      await pause(REST_MS)
    }
  }
}

async function keys({ client, known, prefix, stopped }: LoadParts): Promise<void> {
  for (let n = 0; !stopped(); n++) {
    const body = { name: `${prefix}-${n}`, scopes: ['records:read'] }
    const { body: created } = await client.insist(posting('/v1/admin/api-keys', body))
    const path = `/v1/admin/api-keys/${created.key_id}`
    const removed = await client.insist({ method: 'DELETE', path })
    if (removed.status === 200 || removed.status === 404) known.revoked.push(created.key)
    else known.breaches.push(`The deletion of a key was answered ${removed.status} ${removed.body?.code}`)
    await checkRevoked(client, known, { key: created.key, what: `key, removed with ${removed.status},` })
    await pause(REST_MS)
  }
}

/** Checks that a revoked credential is refused, whichever node serves. */
async function checkRevoked(
  client: ClusterClient,
  known: LoadParts['known'],
  { key, what }: { key: string; what: string },
): Promise<void> {
  const { status } = await client.insist({ method: 'GET', path: '/v1/whoami', key })
  if (status !== 401) known.breaches.push(`A revoked ${what} was answered ${status}`)
}
