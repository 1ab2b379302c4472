/**
 * A session of the client for any runtime: writes, reads, streams, ingests, verifies. Prints the results.
 * Arguments: the address of a server and a key.
 */
import { NotFoundError, ServiceClient } from '../../../packages/client/dist/index.js'

const [url, apiKey] = process.argv.slice(-2)
const client = new ServiceClient({ url, apiKey })
const rooms = client.collection('rooms')
const first = await rooms.write({ room: 'hall' })
await rooms.writeBatch([{ room: 'attic' }, { room: 'cellar' }])
const read = await rooms.get(first.hash)
const missing = await rooms.get('0'.repeat(64)).catch((error) => error instanceof NotFoundError)
const streamed = []
await new Promise((resolve) => {
  const subscription = client.subscribeAgent(
    'rooms',
    ({ payload }) => {
      if (streamed.push(payload.room) < 3) return
      subscription.close()
      resolve()
    },
    { since: 0 },
  )
})
const { accepted } = await client.ingestMany('rooms', [{ room: 'porch' }])
const { public_key: publicKey } = await rooms.status()
const verified = await client.verify(await client.exportStrand({ agent: 'rooms' }), { publicKey })
const other = await client.verify(await client.exportStrand({ agent: 'rooms' }), {
  publicKey: '0'.repeat(64),
})
console.log(
  JSON.stringify({
    read: read.data,
    missing,
    streamed,
    accepted,
    verified: [verified.ok, verified.records],
    other: other.ok,
  }),
)
