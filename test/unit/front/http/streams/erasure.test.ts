import { afterEach, beforeEach, expect, it } from 'vitest'
import { refuse, type Refusal } from '../../../../../src/base/errors.js'
import { limits } from '../../../../../src/base/limits/limits.js'
import type { Shards } from '../../../../../src/dispatch/links/shards.js'
import type { Exchange } from '../../../../../src/front/http/exchange.js'
import { ownStreamBounds } from '../../../../../src/front/limits/bounds.js'
import { StreamHub } from '../../../../../src/front/http/streams/hub.js'
import type { Command, Outcome } from '../../../../../src/protocol/messages.js'
import type { Principal } from '../../../../../src/front/routes/route.js'

/* What is kept of the latest events when a record is erased: one shard that answers at once, and slow readers. */

/** The commands that the hub has sent. */
const sent: Command[] = []
/** Why the node may not answer. */
let cutOff: Refusal | undefined

const shards = {
  count: 1,
  shardOf: () => 0,
  leaseRefusal: () => cutOff,
  send: (_agent: string, command: Command, receive: (outcome: Outcome) => void) =>
    shards.sendTo(0, command, receive),
  sendTo(_shard: number, command: Command, receive: (outcome: Outcome) => void): void {
    sent.push(command)
    if (command.kind !== 'strandLocate') return
    const keys = { publicKey: '0', retiredKeys: [] }
    receive({ kind: 'located', shard: 0, agentNo: 0, strand: '0', ...keys, headSeq: 0, headHash: '0' })
  },
}

/** A client whose socket takes no more, once told so. */
class Client {
  readonly open = true
  full = false
  text = ''
  takeMore = () => {}

  begin(): void {}
  end(): void {}
  onGone(): void {}

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
  cutOff = undefined
  sent.length = 0
  hub = new StreamHub(shards as unknown as Shards, ownStreamBounds(100))
})
afterEach(() => hub.close())

/** Opens as many streams as there have to be for events to be kept in memory, and two more. */
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

async function tell(seq: number, text: string): Promise<void> {
  hub.events(0, [{ agent: 'a', seq, hlc: `00000000000${seq}-0000`, data: JSON.stringify({ text }) }])
  for (let turn = 0; turn < 40; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('is forgotten: a reader that is behind gets what follows from the store', async () => {
  const [early, late] = openMany()
  await tell(1, 'first')
  await tell(2, 'to be erased')
  early.takeMore()
  expect(early.text).toContain('to be erased')
  expect(sent.filter(({ kind }) => kind === 'streamPage')).toEqual([])
  hub.forget(['a'])
  await tell(3, 'third')
  late.takeMore()
  expect(late.text).not.toContain('to be erased')
  expect(sent.filter(({ kind }) => kind === 'streamPage')).toMatchObject([{ agent: 'a', fromSeq: 2 }])
})

it('stays in memory while another node may have erased it', async () => {
  const [early, late] = openMany()
  await tell(1, 'first')
  await tell(2, 'to be erased')
  early.takeMore()
  expect(early.text).toContain('to be erased')
  cutOff = refuse('unavailable', 'This node cannot reach the database of its cluster, try again')
  late.takeMore()
  expect(late.text).not.toContain('to be erased')
  expect(sent.filter(({ kind }) => kind === 'streamPage')).toMatchObject([{ agent: 'a', fromSeq: 2 }])
})
