import { afterEach, beforeEach, expect, it } from 'vitest'
import { refuse, type Refusal } from '../../../../../src/base/errors.js'
import { limits } from '../../../../../src/base/limits/limits.js'
import type { Shards } from '../../../../../src/dispatch/links/shards.js'
import type { Exchange } from '../../../../../src/front/http/exchange.js'
import { streamBounds } from '../../../../../src/front/limits/bounds.js'
import { StreamHub } from '../../../../../src/front/http/streams/hub.js'
import type { Command, Outcome } from '../../../../../src/protocol/messages.js'
import type { Principal } from '../../../../../src/front/routes/route.js'

/*
 * The recent events in memory when a record is erased: one shard that answers synchronously, and slow
 * clients.
 */

/** The commands that the hub has sent. */
const sent: Command[] = []
/** Why the node must not answer. */
let leaseRefusal: Refusal | undefined

const shards = {
  count: 1,
  shardOf: () => 0,
  leaseRefusal: () => leaseRefusal,
  send: (_agent: string, command: Command, receive: (outcome: Outcome) => void) =>
    shards.sendTo(0, command, receive),
  sendTo(_shard: number, command: Command, receive: (outcome: Outcome) => void): void {
    sent.push(command)
    if (command.kind !== 'strandLocate') return
    const keys = { publicKey: '0', retiredKeys: [] }
    receive({ kind: 'located', shard: 0, agentNo: 0, strand: '0', ...keys, headSeq: 0, headHash: '0' })
  },
}

/** A client whose socket accepts no more while `full`. */
class Client {
  readonly open = true
  full = false
  text = ''
  takeMore = () => {}

  begin(): void {}
  end(): void {}
  onDisconnect(): void {}

  onWritable(callback: () => void): void {
    this.takeMore = () => {
      this.full = false
      callback()
    }
  }

  write(part: string): boolean {
    this.text += part
    return !this.full
  }
}

const root: Principal = { id: 'root', scopes: new Set(['admin:*']), agents: [] }
let hub: StreamHub
beforeEach(() => {
  leaseRefusal = undefined
  sent.length = 0
  hub = new StreamHub(shards as unknown as Shards, streamBounds(100))
})
afterEach(() => hub.close())

/** Opens enough streams for events to be stored in memory, plus two. */
function openMany(): [Client, Client] {
  const clients = Array.from({ length: limits.streamRecentReadersMin + 2 }, () => new Client())
  for (const client of clients) {
    hub.open(client as unknown as Exchange, { scope: 'agent', agents: ['a'] }, root)
  }
  const [early, late] = clients
  if (early === undefined || late === undefined) throw new Error('Expected clients')
  early.full = true
  late.full = true
  return [early, late]
}

async function publish(seq: number, text: string): Promise<void> {
  hub.events(0, [{ agent: 'a', seq, hlc: `00000000000${seq}-0000`, data: JSON.stringify({ text }) }])
  for (let turn = 0; turn < 40; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('drops an erased record: a stream that is behind continues from the store', async () => {
  const [early, late] = openMany()
  await publish(1, 'first')
  await publish(2, 'to be erased')
  early.takeMore()
  expect(early.text).toContain('to be erased')
  expect(sent.filter(({ kind }) => kind === 'streamPage')).toEqual([])
  hub.forget(['a'])
  await publish(3, 'third')
  late.takeMore()
  expect(late.text).not.toContain('to be erased')
  expect(sent.filter(({ kind }) => kind === 'streamPage')).toMatchObject([{ agent: 'a', fromSeq: 2 }])
})

it('does not send a record from memory while another node may have erased it', async () => {
  const [early, late] = openMany()
  await publish(1, 'first')
  await publish(2, 'to be erased')
  early.takeMore()
  expect(early.text).toContain('to be erased')
  leaseRefusal = refuse('unavailable', 'This node cannot reach the database of its cluster, try again')
  late.takeMore()
  expect(late.text).not.toContain('to be erased')
  expect(sent.filter(({ kind }) => kind === 'streamPage')).toMatchObject([{ agent: 'a', fromSeq: 2 }])
})
