import { expect, it } from 'vitest'
import { ClusterClient } from '../support/cluster/rounds/cluster-client.js'
import { startRouter } from '../support/cluster/rounds/router.js'
import { eventually } from '../support/eventually.js'

it('fails the requests of a check when the rounds end, and nothing else', async () => {
  const client = new ClusterClient(() => ['http://127.0.0.1:1'], false)
  const router = await startRouter(client)
  const answer = fetch(`${router.url}/v1/whoami`).catch((error: Error) => error)
  await eventually(() => client.describe().startsWith('1 requests wait'))
  client.end()
  expect(await answer).toBeInstanceOf(TypeError)
  router.stop()
})
