import { expect, it } from 'vitest'
import { ServiceClient } from '../../src/client/index.js'
import { ownedAgent, usualPassword as password } from '../support/auth/accounts.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { startServer } from '../support/server/server.js'

it('a client reports that sign-in is off, or has no license', async () => {
  const off = await startServer()
  expect(await new ServiceClient({ url: off.url }).auth.status()).toEqual({ enabled: false })
  await off.stop()
  const unlicensed = await startServer({ env: { SERVICE_AUTH_ENABLED: 'true' } })
  const refused = new ServiceClient({ url: unlicensed.url }).auth.status()
  await expect(refused).rejects.toMatchObject({ status: 402, code: 'license_required' })
  await unlicensed.stop()
})

it('a subscription continues with a new token after the token that opened the stream has expired', async () => {
  const brief = await startAuthServer({ env: { SERVICE_AUTH_JWT_EXPIRY_SECS: '2' } })
  await ownedAgent(brief, 'diary')
  const client = new ServiceClient({ url: brief.url })
  const { user_id: owner } = await client.auth.register({ email: 'olga@example.org', password })
  const first = client.auth.session?.token
  expect(first).toBeDefined()
  const seen: unknown[] = []
  await new Promise<void>((resolve, onError) => {
    let connections = 0
    const onOpen = () => {
      connections += 1
      void client.agent('diary').write({ owner, connections }).catch(onError)
    }
    const subscription = client.subscribeAgent(
      'diary',
      ({ payload }) => {
        seen.push(payload['connections'])
        if (connections < 2 || seen.length < 2) return
        subscription.close()
        resolve()
      },
      { since: 0, onOpen, onError },
    )
  })
  expect(seen).toEqual([1, 2])
  expect(client.auth.session?.token).not.toBe(first)
  expect(client.auth.session).toBeDefined()
  await brief.stop()
})
