import { randomBytes } from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'
import { expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import type { ShardThreads } from '../../../../src/dispatch/threads/shard-threads.js'
import type { LinkMessage } from '../../../../src/cluster/links/framing.js'
import { Link } from '../../../../src/cluster/links/link.js'
import { connectLink, listenForLinks } from '../../../../src/cluster/links/sockets.js'
import { decodeOutcomes, encodeOutcomes, type FrontFrame } from '../../../../src/protocol/frame.js'
import { ShardMemory } from '../../../../src/protocol/shard-memory.js'
import { ShardRelay } from '../../../../src/cluster/links/shard-relay.js'
import { startTcpProxy } from '../../../support/cluster/tcp-proxy.js'
import { eventually } from '../../../support/eventually.js'

/** A relay of a shard over a link within this process. */
async function startRelay() {
  const key = randomBytes(32)
  const received: LinkMessage[] = []
  let far: Link | undefined
  const server = await listenForLinks({ host: '127.0.0.1', port: 0, key, failed() {} }, (sockets) => {
    far = new Link(sockets, { message: (message) => void received.push(message), closed() {} })
  })
  const proxy = await startTcpProxy(server.port)
  const sockets = await connectLink({ host: '127.0.0.1', port: proxy.port, key })
  const link = new Link(sockets, { message() {}, closed() {} })
  const memory = new ShardMemory()
  let thread: MessagePort | undefined
  const threads: Pick<ShardThreads, 'join'> = {
    join(_shard, _front, port) {
      thread = port
      return { memory, term: 5 }
    },
  }
  const relay = ShardRelay.open({ shard: 2, front: limits.frontsMax, threads, link })
  await eventually(() => far !== undefined)
  if (relay === undefined || thread === undefined) throw new Error('The relay was not opened')
  const close = async () => {
    link.close('the test is over')
    server.close()
    await proxy.stop()
  }
  return { relay, thread, memory, proxy, received, close }
}

const frameOf = (outcomes: FrontFrame['outcomes'], noticeNo: number, isLate = false): ArrayBuffer =>
  encodeOutcomes({
    outcomes,
    events: [],
    notices: [],
    appended: false,
    noticeNo: noticeNo,
    ...(isLate && { isLate }),
  })

it('makes the shard wait until the front of another node has processed its notices', async () => {
  const { relay, thread, memory, received, close } = await startRelay()
  relay.serves(0)
  thread.postMessage(frameOf([], 1))
  await eventually(() => received.some(({ kind }) => kind === 'frame'))
  expect(memory.isAcknowledged(1)).toBe(false)
  relay.taken(1)
  expect(memory.isAcknowledged(1)).toBe(true)
  thread.close()
  await close()
})

it('refuses answers to a principal that fills a link, with the reason, and passes all others', async () => {
  const { relay, thread, proxy, received, close } = await startRelay()
  proxy.hold()
  const pages = limits.linkAnswerBytesPerPrincipalMax / limits.pageBytesMax
  const answer = (id: number, caller: string, bytes: number) => {
    const rows = { kind: 'rows' as const, rows: Buffer.alloc(bytes), count: 1 }
    thread.postMessage({ kind: 'late', id, caller, frame: frameOf([[id, rows]], 0, true) })
  }
  for (let id = 0; id < pages + 2; id++) answer(id, 'greedy', limits.pageBytesMax)
  answer(100, 'other', limits.pageBytesMax)
  thread.close()
  await eventually(() => relay.isClosed === true)
  proxy.heal()
  await eventually(() => received.some(({ kind }) => kind === 'value'))
  // The relay has left after all its answers were sent.
  const last = received.at(-1)
  expect(last?.kind === 'value' && last.value).toEqual({ kind: 'left', shard: 2, term: 5 })
  const frames = received.flatMap((one) => (one.kind === 'value' ? [] : [decodeOutcomes(one.frame)]))
  const outcomes = new Map(frames.flatMap((frame) => frame.outcomes))
  expect(outcomes.get(100)?.kind).toBe('rows')
  expect(outcomes.get(0)?.kind).toBe('rows')
  expect(outcomes.size).toBe(pages + 3)
  expect(outcomes.get(pages + 1)).toMatchObject({
    code: 'overloaded',
    detail: expect.stringContaining('are queued for the link between two nodes'),
  })
  await close()
})
