import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Command, Outcome } from '../../src/protocol/messages.js'
import { appendNumber, keyed, replyOf, TestShard } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})

afterEach(() => shard.remove())

function batch(agent: string, records: readonly object[], key: string): Command {
  const body = Buffer.from(JSON.stringify({ records }))
  return { kind: 'batchAppend', agent, emerge: true, body, options: keyed(key) }
}

const ingested: Command = {
  kind: 'ingestOne',
  agent: 'ingest',
  body: Buffer.from('{"n":1}'),
  options: keyed('ingested'),
}

function textOf(outcome: Outcome | undefined): string {
  if (outcome?.kind !== 'reply') throw new Error(`Expected a reply, got ${JSON.stringify(outcome)}`)
  return outcome.body
}

/** Bytes of the rows of the stored answers. */
function storedBytes(): number[] {
  return Array.from(shard.environment.idempotency.getRange(), ({ key, value }) => key.length + value.length)
}

const numbers = (count: number) => Array.from({ length: count }, (_none, n) => ({ data: { n } }))

const writes: Record<string, Command> = {
  'a record of a new agent': appendNumber('new', 1, keyed('new')),
  'a record of an agent': appendNumber('old', 2, keyed('old')),
  'an ingested record': ingested,
  'a batch of a new agent': batch('new-batch', numbers(300), 'new batch'),
  'a batch of an agent': batch('old', numbers(300), 'batch'),
  'a batch of one record': batch('old', numbers(1), 'one'),
}

it.each(Object.entries(writes))(
  'the answer to %s is stored short, and made again word by word',
  async (_name, write) => {
    shard.ask(appendNumber('old', 1))
    const first = textOf(shard.ask(write))
    shard.run(appendNumber('old', 3), appendNumber('ingest', 4), appendNumber('new-batch', 5))
    expect(storedBytes()).toEqual([expect.toSatisfy((bytes: number) => bytes <= 330)])
    expect(textOf(shard.ask(write))).toBe(first)
    await shard.reopen()
    expect(shard.ask(write)).toEqual({ kind: 'reply', status: 201, body: first, replayed: true })
  },
)

it('stays the same once its records are deleted and erased', async () => {
  const write = batch('erased', numbers(3), 'erased')
  const first = textOf(shard.ask(write))
  for (const [at, action] of (['delete', 'erase'] as const).entries()) {
    const hash: string = replyOf(shard.ask(write)).results[at].record_id
    replyOf(
      shard.ask({ kind: 'recordMutate', agent: 'erased', action, hash, principal: 'root', options: {} }),
    )
  }
  await shard.reopen()
  expect(textOf(shard.ask(write))).toBe(first)
})
