import { afterEach, expect, it } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import type { Shards } from '../../../../../src/dispatch/links/shards.js'
import type { Exchange } from '../../../../../src/front/http/exchange.js'
import { streamBounds } from '../../../../../src/front/limits/bounds.js'
import { StreamHub } from '../../../../../src/front/http/streams/hub.js'
import type { Command, Outcome } from '../../../../../src/protocol/messages.js'
import type { Principal } from '../../../../../src/front/routes/route.js'

/* Streams of clients that leave events unread: one shard that answers synchronously. */

let pageRequests = 0

const shards = {
  count: 1,
  shardOf: () => 0,
  leaseRefusal: () => undefined,
  send: (_agent: string, command: Command, receive: (outcome: Outcome) => void) =>
    shards.sendTo(0, command, receive),
  sendTo(_shard: number, command: Command, receive: (outcome: Outcome) => void): void {
    if (command.kind === 'streamPage') pageRequests++
    if (command.kind !== 'strandLocate') return
    const keys = { publicKey: '0', retiredKeys: [] }
    receive({ kind: 'located', shard: 0, agentNo: 0, strand: '0', ...keys, headSeq: 0, headHash: '0' })
  },
}

/** A client that reads only if the test says so. */
class Client {
  open = true
  reads = true
  bytes = 0
  resumeReading = () => {}
  disconnect = () => {}

  begin(): void {}
  end(): void {}

  onDisconnect(callback: () => void): void {
    this.disconnect = () => {
      this.open = false
      callback()
    }
  }

  onWritable(callback: () => void): void {
    this.resumeReading = () => {
      this.reads = true
      callback()
    }
  }

  write(part: string | Uint8Array): boolean {
    this.bytes += part.length
    return this.reads
  }
}

const hub = new StreamHub(shards as unknown as Shards, streamBounds(1_000))
afterEach(() => hub.close())

const EVENT_BYTES = 1 << 20

function open(id: string): Client {
  const client = new Client()
  const principal: Principal = { id, scopes: new Set(['admin:*']), agents: [] }
  hub.open(client as unknown as Exchange, { scope: 'agent', agents: ['a'] }, principal)
  return client
}

async function publish(seq: number): Promise<void> {
  const data = `{"payload":"${'x'.repeat(EVENT_BYTES)}"}`
  hub.events(0, [{ agent: 'a', seq, hlc: `00000000000${seq}-0000`, data }])
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('pauses the other streams of a principal while too many bytes are unread', async () => {
  const silent = Array.from({ length: limits.streamUnsentBytesPerPrincipalMax / EVENT_BYTES }, () =>
    open('ann'),
  )
  const reading = open('ann')
  const other = open('bob')
  for (const client of silent) client.reads = false
  await publish(1)
  expect(reading.bytes).toBeLessThan(EVENT_BYTES)
  expect(other.bytes).toBeGreaterThan(EVENT_BYTES)
  await publish(2)
  expect(silent.every(({ bytes }) => bytes < 2 * EVENT_BYTES)).toBe(true)
  expect(other.bytes).toBeGreaterThan(2 * EVENT_BYTES)
  // No page is requested either, because it would have to wait in memory.
  expect(pageRequests).toBe(0)
  for (const client of silent.splice(0, 2)) client.disconnect()
  await publish(3)
  expect(pageRequests).toBeGreaterThan(0)
  expect(other.bytes).toBeGreaterThan(3 * EVENT_BYTES)
})
