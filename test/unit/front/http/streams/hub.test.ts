import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { GrantText } from '../../../../../src/auth/grant.js'
import { limits } from '../../../../../src/base/limits/limits.js'
import type { Shards } from '../../../../../src/dispatch/links/shards.js'
import type { Exchange } from '../../../../../src/front/http/exchange.js'
import { streamBounds } from '../../../../../src/front/limits/bounds.js'
import { StreamHub } from '../../../../../src/front/http/streams/hub.js'
import type { Refusal } from '../../../../../src/base/errors.js'
import type { Command, Outcome } from '../../../../../src/protocol/messages.js'
import type { StreamEvent } from '../../../../../src/protocol/stream-messages.js'
import type { UserAccess } from '../../../../../src/protocol/command-options.js'
import type { Principal, StreamRequest } from '../../../../../src/front/routes/route.js'

/* Streams of users when row policies change at the worst moment: shards that answer when the test says so. */

interface Call {
  shard: number
  command: Command
  receive: (outcome: Outcome) => void
}

/** Two shards; the last digit of an agent's name determines its shard. */
class ScriptedShards {
  readonly count = 2
  readonly calls: Call[] = []
  /** Why nothing may be answered, if the lease of the shards has ended. */
  refusal: Refusal | undefined
  serving = true

  leaseRefusal(): Refusal | undefined {
    return this.refusal
  }

  linkOf(): { serving: boolean } {
    return this
  }

  shardOf(agent: string): number {
    return Number(agent.at(-1)) % 2
  }

  send(agent: string, command: Command, receive: Call['receive']): void {
    this.sendTo(this.shardOf(agent), command, receive)
  }

  sendTo(shard: number, command: Command, receive: Call['receive']): void {
    this.calls.push({ shard, command, receive })
  }

  request(agent: string, command: Command): Promise<Outcome> {
    return new Promise((resolve) => this.send(agent, command, resolve))
  }

  /** Removes and returns the waiting commands of a kind, oldest first. */
  take(kind: Command['kind']): Call[] {
    const taken = this.calls.filter(({ command }) => command.kind === kind)
    for (const call of taken) this.calls.splice(this.calls.indexOf(call), 1)
    return taken
  }
}

/** Records the answer to a client. */
class RecordedExchange {
  open = true
  text = ''
  refusal: Refusal | undefined

  begin(): void {}
  onWritable(): void {}
  onDisconnect(): void {}

  write(part: string): boolean {
    this.text += part
    return true
  }

  end(_status: number, last = ''): void {
    this.text += last
    this.open = false
  }

  refuse(refusal: Refusal): void {
    this.refusal = refusal
    this.open = false
  }
}

const access: UserAccess = {
  claims: { sub: 'usr_ann', email: 'ann@example.org', app_metadata: {}, user_metadata: {} },
}
const ann: Principal = {
  id: 'user::usr_ann',
  scopes: new Set(),
  agents: [],
  user: {
    namespace: { id: '', agent: 'default' },
    claims: { ...access.claims, iat: 0, exp: 9_000_000_000, jti: 'j', iss: 'i', sid: 's', amr: [] },
    access,
  },
}
/** A grant as a shard sends it. */
function grant(key: string, conditions: object[]): GrantText {
  return { key, text: JSON.stringify({ policies: [{ conditions }], values: { '$jwt.sub': 'usr_ann' } }) }
}
const ownRows = grant('own', [{ field: 'owner', op: 'eq', value: '$jwt.sub' }])
const everything = grant('everything', [])

let shards: ScriptedShards
let hub: StreamHub

beforeEach(() => {
  shards = new ScriptedShards()
  hub = new StreamHub(shards as unknown as Shards, streamBounds(100))
})

afterEach(() => {
  hub.close()
  vi.useRealTimers()
})

function open(request: StreamRequest, principal = ann): RecordedExchange {
  const exchange = new RecordedExchange()
  hub.open(exchange as unknown as Exchange, request, principal)
  return exchange
}

const ofAgent = (agent: string): StreamRequest => ({ scope: 'agent', agents: [agent], access })
const ofMany = (...agents: string[]): StreamRequest => ({ scope: 'global', agents, access })

/** Answers the waiting commands for the location of strands, with a grant. */
async function locate(readable = ownRows): Promise<number> {
  const taken = shards.take('strandLocate')
  for (const { shard, receive } of taken) {
    const place = { agentNo: 1, strand: '0', publicKey: '0', retiredKeys: [], headSeq: 4, headHash: '0' }
    receive({ kind: 'located', shard, ...place, readable })
  }
  await nextTurns()
  return taken.length
}

/** Lets work that waits for outcomes, and events that are sent a few streams at a time, proceed. */
async function nextTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function watching(): void {
  for (const { receive } of shards.take('watch')) {
    receive({ kind: 'watching', reached: { ms: 1, counter: 0 } })
  }
}

function event(agent: string, seq: number, owner: string): StreamEvent {
  const data = JSON.stringify({ payload: { owner, seq }, agent, seq, type: 'record' })
  return { agent, seq, hlc: `00000000000${seq}-0000`, data }
}

describe('a user’s stream', () => {
  it('shows live events that the policies of their agent allow', async () => {
    const stream = open(ofMany('a0', 'b1'))
    await locate()
    watching()
    hub.events(0, [event('a0', 5, 'usr_ann'), event('a0', 6, 'usr_bob'), event('c0', 7, 'usr_ann')])
    hub.events(1, [event('b1', 5, 'usr_bob'), event('b1', 8, 'usr_ann')])
    await nextTurns()
    expect(
      [...stream.text.matchAll(/"agent":"(..)","seq":(\d)/g)].map(([, agent, seq]) => `${agent} ${seq}`),
    ).toEqual(['a0 5', 'b1 8'])
  })

  it('shows records of the server only if a policy names their types', async () => {
    const signIn = (seq: number): StreamEvent => {
      const data = JSON.stringify({ payload: { ip: '::1' }, agent: 'a0', seq, type: 'auth/login' })
      return { ...event('a0', seq, 'usr_ann'), data }
    }
    const absent = [{ field: 'secret', op: 'exists', value: false }]
    const streams = [open(ofMany('a0'))]
    await locate(grant('absent', absent))
    const named = { policies: [{ conditions: absent, types: ['auth/*'] }], values: {} }
    streams.push(open(ofMany('a0')))
    await locate({ key: 'named', text: JSON.stringify(named) })
    watching()
    hub.events(0, [event('a0', 5, 'usr_ann'), signIn(6)])
    await nextTurns()
    const seen = streams.map(({ text }) =>
      [...text.matchAll(/"seq":(\d),"type"/g)].map(([, seq]) => Number(seq)),
    )
    expect(seen).toEqual([[5], [6]])
  })

  it('shows events only once if a page arrives while they are sent to a few streams at a time', async () => {
    const streams = Array.from({ length: 3 }, () => open(ofAgent('a0')))
    await locate()
    const [first] = streams
    if (first === undefined) throw new Error('Expected a stream')
    // More than one write, so the streams continue from the store, which already has later events.
    const long = (seq: number): StreamEvent => {
      const data = JSON.stringify({
        payload: { owner: 'usr_ann', seq, text: 'x'.repeat(40_000) },
        seq,
        type: 'record',
      })
      return { ...event('a0', seq, 'usr_ann'), data }
    }
    hub.events(0, [long(5), long(6)])
    await nextTurns()
    for (const { receive } of shards.take('streamPage')) {
      receive({
        kind: 'page',
        events: [5, 6, 7].map(long),
        nextSeq: 8,
        reached: { ms: 7, counter: 0 },
        end: true,
      })
    }
    hub.events(0, [long(7)])
    hub.events(0, [event('a0', 8, 'usr_ann')])
    await nextTurns()
    for (const { text } of streams) {
      expect([...text.matchAll(/^id: (\d)/gm)].map(([, id]) => Number(id))).toEqual([4, 5, 6, 7, 8])
    }
  })

  it('is ended if the policies of its agent change, but not those of another', async () => {
    const streams = [open(ofAgent('a0')), open(ofMany('a0', 'b1'))]
    const other = open(ofAgent('c0'))
    await locate()
    watching()
    hub.endPoliciesChanged(['a0'])
    await nextTurns()
    expect(streams.map(({ open }) => open)).toEqual([false, false])
    expect(other.open).toBe(true)
    expect(hub.count).toBe(1)
  })

  it('opens with the newer policies if they change while it is being opened', async () => {
    const stream = open(ofMany('a0', 'b1'))
    const [first, second] = shards.take('strandLocate')
    const place = { agentNo: 1, strand: '0', publicKey: '0', retiredKeys: [], headSeq: 4, headHash: '0' }
    first?.receive({ kind: 'located', shard: 0, ...place, readable: everything })
    hub.endPoliciesChanged(['a0'])
    second?.receive({ kind: 'located', shard: 1, ...place, readable: everything })
    await nextTurns()
    expect(await locate()).toBe(2)
    watching()
    hub.events(0, [event('a0', 5, 'usr_bob'), event('a0', 6, 'usr_ann')])
    await nextTurns()
    expect(stream.text).toContain('usr_ann')
    expect(stream.text).not.toContain('usr_bob')
  })

  it('is refused while the grants of open streams take too much memory', async () => {
    hub.close()
    hub = new StreamHub(shards as unknown as Shards, streamBounds(1_000))
    const value = 'x'.repeat(limits.grantBytesMax - 200)
    const large = (key: string) => grant(key, [{ field: 'owner', op: 'ne', value }])
    const many = limits.streamGrantBytesPerPrincipalMax / limits.grantBytesMax
    const streams = Array.from({ length: many }, () => open(ofAgent('a0')))
    await locate(large('one'))
    expect(streams.every((stream) => stream.open)).toBe(true)
    const beyond = open(ofAgent('a0'))
    await locate(large('one'))
    expect(beyond.refusal).toMatchObject({ code: 'overloaded', retryAfterSecs: 5 })
    hub.endPoliciesChanged(['a0'])
    await nextTurns()
    // One request with many agents: no more grants are read than it may hold.
    const wide = open(ofMany(...Array.from({ length: 3 * many }, (_none, n) => `b${n}`)))
    let calls = 0
    while (wide.open && calls < 3 * many) calls += await locate(large('two'))
    expect(wide.refusal).toMatchObject({ code: 'overloaded' })
    expect(calls).toBeLessThan(many + 2 * limits.streamGrantsInFlightMax)
    expect(hub.count).toBe(0)
    const after = open(ofAgent('a0'))
    await locate(large('one'))
    expect(after.open).toBe(true)
  })

  it('is refused if the policies keep changing', async () => {
    const stream = open(ofMany('a0'))
    let calls = 0
    while (stream.open) {
      hub.endPoliciesChanged(['z1'])
      calls += await locate()
    }
    expect(stream.refusal).toMatchObject({ code: 'overloaded', retryAfterSecs: 1 })
    expect(calls).toBeGreaterThan(1)
  })

  it('is ended if a shard thread is restarted, because a change of policies may have been lost', async () => {
    const streams = [open(ofAgent('a0')), open(ofMany('b1'))]
    const elsewhere = open(ofAgent('b1'))
    await locate()
    watching()
    hub.restarted(0)
    // A global stream receives events of every shard.
    expect(streams.map(({ open }) => open)).toEqual([false, false])
    expect(elsewhere.open).toBe(true)
  })

  it('is refused if one of its agents may not be read', async () => {
    const stream = open(ofMany('a0', 'b1'))
    const [first, second] = shards.take('strandLocate')
    first?.receive({ code: 'forbidden', detail: 'Expected a policy' })
    second?.receive({ code: 'unavailable', detail: 'Expected a shard' })
    await nextTurns()
    expect(stream.refusal?.code).toBe('forbidden')
    expect(shards.take('watch')).toEqual([])
  })

  it('is not opened if its credential is revoked in the meantime', async () => {
    const stream = open(ofMany('a0'))
    hub.endPrincipal(ann.id)
    expect(stream.open).toBe(false)
    await locate()
    expect(hub.count).toBe(0)
    expect(shards.take('watch')).toEqual([])
  })
})

describe('a key’s stream', () => {
  const key: Principal = { id: 'key::one', scopes: new Set(), agents: [] }
  const page = (seqs: number[]): Outcome => ({
    kind: 'page',
    events: seqs.map((seq) => event('a0', seq, 'usr_eve')),
    nextSeq: Math.max(0, ...seqs) + 1,
    reached: { ms: 1, counter: 0 },
    end: true,
  })
  const shown = ({ text }: RecordedExchange) =>
    [...text.matchAll(/^event: record\ndata: .*"seq":(\d)/gm)].map(([, seq]) => seq)

  it('loses no record if the thread of its shard is replaced while a page is awaited', async () => {
    const stream = open({ scope: 'agent', agents: ['a0'] }, key)
    const [located] = shards.take('strandLocate')
    const place = { agentNo: 1, strand: '0', publicKey: '0', retiredKeys: [], headSeq: 4, headHash: '0' }
    located?.receive({ kind: 'located', shard: 0, ...place })
    await nextTurns()
    hub.events(0, [event('a0', 5, 'usr_eve')])
    // The stream continues from the store, because the thread is new. The page waits while the shard is being
    // transferred, and is read by the next thread.
    hub.restarted(0)
    const [first] = shards.take('streamPage')
    hub.restarted(0)
    expect(shards.take('streamPage')).toEqual([])
    first?.receive({ ...page([]), nextSeq: 6 } as Outcome)
    await nextTurns()
    // A record committed before the next thread began to watch is not sent as an event.
    const [second] = shards.take('streamPage')
    hub.events(0, [event('a0', 7, 'usr_eve')])
    second?.receive(page([6, 7]))
    hub.events(0, [event('a0', 8, 'usr_eve')])
    await nextTurns()
    expect(shown(stream)).toEqual(['5', '6', '7', '8'])
  })

  const unavailable: Refusal = { code: 'unavailable', detail: 'The link is slow' }
  const overloaded: Refusal = { code: 'overloaded', detail: 'Too many requests wait' }
  /** A stream at the record 4, in a hub whose timers the test moves. */
  const openAt4 = async () => {
    hub.close()
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    hub = new StreamHub(shards as unknown as Shards, streamBounds(100))
    const stream = open({ scope: 'agent', agents: ['a0'] }, key)
    const [located] = shards.take('strandLocate')
    const place = { agentNo: 1, strand: '0', publicKey: '0', retiredKeys: [], headSeq: 4, headHash: '0' }
    located?.receive({ kind: 'located', shard: 0, ...place })
    watching()
    await nextTurns()
    return stream
  }
  const answerAll = (kind: Command['kind'], outcome: Outcome) => {
    const taken = shards.take(kind)
    for (const { receive } of taken) receive(outcome)
    return taken.length
  }

  // It was requested again with the next heartbeat only, up to 15 s later.
  it('gets a refused page soon after its shard may answer again', async () => {
    const stream = await openAt4()
    hub.rereadStore(['a0'])
    shards.refusal = unavailable
    expect(answerAll('streamPage', unavailable)).toBe(1)
    await nextTurns()
    vi.advanceTimersByTime(limits.streamExpiryMs)
    expect(shards.take('streamPage')).toEqual([])
    shards.refusal = undefined
    vi.advanceTimersByTime(limits.streamExpiryMs)
    expect(answerAll('streamPage', page([5]))).toBe(1)
    await nextTurns()
    expect(shown(stream)).toEqual(['5'])
  })

  it('gets a page that was refused while its shard was away as soon as it serves', async () => {
    await openAt4()
    hub.rereadStore(['a0'])
    answerAll('streamPage', unavailable)
    await nextTurns()
    hub.restarted(0)
    expect(answerAll('streamPage', page([5]))).toBe(1)
  })

  // It received no event any more, because requests that had waited for the shard had filled its queue.
  it('is watched again if the queue of its shard was full when that was restarted', async () => {
    const stream = await openAt4()
    const global = open({ scope: 'global' }, key)
    watching()
    hub.restarted(0)
    expect(answerAll('watch', overloaded)).toBe(2)
    answerAll('streamPage', page([5]))
    answerAll('logPage', page([5]))
    await nextTurns()
    vi.advanceTimersByTime(limits.streamExpiryMs)
    expect(shards.take('watch').map(({ command }) => 'agent' in command && command.agent)).toEqual(['a0', ''])
    // What was committed in the meantime is read from the store.
    answerAll('streamPage', page([6]))
    answerAll('logPage', { ...page([6]), reached: { ms: 6, counter: 0 } } as Outcome)
    hub.events(0, [event('a0', 7, 'usr_eve')])
    await nextTurns()
    expect(shown(stream)).toEqual(['5', '6', '7'])
    expect(shown(global)).toEqual(['5', '6', '7'])
    vi.advanceTimersByTime(limits.streamExpiryMs)
    expect(shards.take('watch')).toEqual([])
  })

  it('is not watched again if it has ended', async () => {
    const streams = [await openAt4(), open({ scope: 'global' }, key)]
    watching()
    hub.restarted(0)
    expect(answerAll('watch', overloaded)).toBe(2)
    hub.endPrincipal(key.id)
    await nextTurns()
    expect(streams.map(({ open }) => open)).toEqual([false, false])
    expect(shards.take('watch').every(({ command }) => 'on' in command && !command.on)).toBe(true)
    vi.advanceTimersByTime(limits.streamExpiryMs)
    expect(shards.take('watch')).toEqual([])
  })

  it('is not watched again before its shard serves', async () => {
    await openAt4()
    hub.restarted(0)
    shards.serving = false
    expect(answerAll('watch', unavailable)).toBe(1)
    vi.advanceTimersByTime(limits.streamExpiryMs)
    expect(shards.take('watch')).toEqual([])
    hub.restarted(0)
    expect(shards.take('watch').length).toBe(1)
  })
})
