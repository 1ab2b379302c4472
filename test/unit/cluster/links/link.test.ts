import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { machineClock } from '../../../../src/base/clock.js'
import { encodeLate, encodeValue, type LinkMessage } from '../../../../src/cluster/links/framing.js'
import { LateQueue } from '../../../../src/cluster/links/late-queue.js'
import { Link } from '../../../../src/cluster/links/link.js'
import { connectLink, listenForLinks, type LinkServer } from '../../../../src/cluster/links/sockets.js'
import { startTcpProxy, type TcpProxy } from '../../../support/cluster/tcp-proxy.js'
import { eventually } from '../../../support/eventually.js'

describe('a link', () => {
  let server: LinkServer
  let proxy: TcpProxy
  let links: Link[]
  /** The messages that the other end has received. */
  let received: LinkMessage[]
  let reasons: string[]

  beforeEach(async () => {
    const key = randomBytes(32)
    links = []
    received = []
    reasons = []
    const listener = {
      message: (message: LinkMessage) => void received.push(message),
      closed: (reason: string) => void reasons.push(reason),
    }
    server = await listenForLinks({ host: '127.0.0.1', port: 0, key, failed() {} }, (sockets) => {
      links.push(new Link(sockets, listener))
    })
    proxy = await startTcpProxy(server.port)
    const sockets = await connectLink({ host: '127.0.0.1', port: proxy.port, key })
    await eventually(() => links.length === 1)
    links.unshift(new Link(sockets, listener))
  })

  afterEach(async () => {
    for (const link of links) link.close('the test is over')
    server.close()
    await proxy.stop()
  })

  const near = () => links[0] ?? expect.fail()
  const value = (text: string): LinkMessage => ({ kind: 'value', value: text })
  const large = (text: string) => encodeValue({ text, filling: Buffer.alloc(1_048_576) })
  const sendLate = (principal: string, text: string) => near().sendLate({ principal, parts: large(text) })
  /** The texts of the received messages. */
  const texts = () =>
    received.map((message) => {
      const content = message.kind === 'value' ? message.value : message.kind
      return typeof content === 'object' && content !== null && 'text' in content ? content.text : content
    })

  it('delivers messages in order, and late ones complete', async () => {
    const frame = Uint8Array.from({ length: 200_000 }, (_none, at) => at).buffer
    near().send('one')
    near().sendFrame(7, frame)
    near().sendLate({ principal: 'a', parts: encodeLate({ shard: 3, term: 2 ** 40 }, frame) })
    near().send('two')
    await eventually(() => received.length === 4)
    expect(received.filter(({ kind }) => kind !== 'late')).toEqual([
      value('one'),
      { kind: 'frame', shard: 7, frame },
      value('two'),
    ])
    expect(received).toContainEqual({ kind: 'late', shard: 3, term: 2 ** 40, frame })
  })

  it('delivers later messages before large answers, and the answers of principals alternately', async () => {
    for (let nth = 0; nth < 4; nth++) expect(sendLate('a', `a${nth}`)).toBe(true)
    expect(sendLate('b', 'b')).toBe(true)
    near().send('short')
    near().sendUrgent('urgent')
    await eventually(() => received.length === 7)
    expect(new Set(texts().slice(0, 2))).toEqual(new Set(['short', 'urgent']))
    // The answer of the second principal has not waited for all answers of the first.
    expect(texts().indexOf('b')).toBeLessThan(texts().indexOf('a1'))
  })

  it('queues a limited number of bytes for one principal, and more for others', async () => {
    proxy.hold()
    const taken = Array.from({ length: 40 }, () => sendLate('a', 'a')).filter(Boolean).length
    expect(taken).toBeLessThanOrEqual(limits.linkAnswerBytesPerPrincipalMax / 1_048_576 + 1)
    expect(taken).toBeGreaterThan(30)
    expect(sendLate('b', 'b')).toBe(true)
    proxy.heal()
    await eventually(() => received.length === taken + 1)
    expect(sendLate('a', 'a')).toBe(true)
  })

  it('sends what is queued before it is closed in order, however slowly it arrives', async () => {
    for (let nth = 0; nth < 30; nth++) sendLate('a', `a${nth}`)
    near().finish()
    await eventually(() => reasons.length === 2)
    expect(texts()).toHaveLength(30)
  })

  it('closes when the peer acknowledges nothing, even if the urgent connection works', async () => {
    near().send('one')
    await eventually(() => received.length === 1)
    // The other end has not acknowledged it yet.
    near().look(machineClock() + limits.linkTimeoutMs + 1)
    expect(reasons).toEqual(['the peer does not acknowledge what was sent'])
  })

  it('stays open while the other end acknowledges', async () => {
    near().send('one')
    await eventually(() => received.length === 1)
    links[1]?.look(machineClock())
    links[1]?.sendUrgent('acknowledged')
    await eventually(() => received.length === 2)
    near().look(machineClock() + limits.linkTimeoutMs + 1)
    expect(reasons).toEqual([])
  })
})

it('takes a piece of each principal in round-robin order', () => {
  const queue = new LateQueue()
  const message = (principal: string, pieces: number) => ({
    principal,
    parts: [Buffer.alloc(pieces * limits.linkPieceBytes)],
  })
  for (const one of [message('a', 3), message('a', 1), message('b', 2), message('c', 1)])
    expect(queue.add(one)).toBe(true)
  const ids: number[] = []
  for (let piece = queue.next(); piece !== undefined; piece = queue.next()) ids.push(piece.id)
  expect(ids).toEqual([0, 2, 3, 0, 2, 0, 1])
})
