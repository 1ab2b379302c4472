import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { Shards } from '../../../../../src/dispatch/links/shards.js'
import { answerBytes, bodyBytes } from '../../../../../src/front/limits/bounds.js'
import { Quota } from '../../../../../src/base/quota.js'
import { BodyBuffers } from '../../../../../src/front/http/body-buffers.js'
import { Exchange } from '../../../../../src/front/http/exchange.js'
import { FrontSlices } from '../../../../../src/front/http/front-turn.js'
import { IngestReceiver } from '../../../../../src/front/http/ingest/receiver.js'
import { lineSource } from '../../../../../src/front/http/ingest/source.js'
import { OpenTransfers } from '../../../../../src/front/limits/transfers.js'
import type { HttpResponse } from '../../../../../src/front/engine/http-listener.js'
import type { Outcome } from '../../../../../src/protocol/messages.js'
import type { IngestOptions, IngestRequest } from '../../../../../src/front/routes/route.js'

/*
 * In uWebSockets.js, resume() gives the connection ten seconds to receive something, and only the last part
 * of the body cancels that. The tests check the calls, because waiting for a closed connection takes as long.
 */

/**
 * An ingest whose outcome the test delivers. `calls` are the calls on the response that affect the
 * connection.
 */
function slowIngest(options: Partial<IngestOptions>) {
  const calls: string[] = []
  let onData: (part: ArrayBuffer, last: boolean) => void = () => {}
  const outcomes: ((outcome: Outcome) => void)[] = []
  const response = {
    onAborted: () => {},
    onData: (callback: typeof onData) => (onData = callback),
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
    cork: (write: () => void) => write(),
    writeStatus: () => {},
    writeHeader: () => {},
    end: () => calls.push('end'),
  } as unknown as HttpResponse
  const shards = {
    shardOf: () => 0,
    linkOf: () => ({ serving: true }),
    sendTo: (_shard: number, _command: unknown, done: (outcome: Outcome) => void) => outcomes.push(done),
  } as unknown as Shards
  const exchange = new Exchange(
    response,
    {
      requestId: 'x',
      allowedOrigin: '',
      headOnly: false,
      isLast: false,
      isKept: true,
      unsent: new Quota(answerBytes),
      buffers: new BodyBuffers(),
    },
    { done: () => {} },
  )
  const request: IngestRequest = {
    target: { agent: 'a' },
    options: { gzip: false, onError: 'skip', ...options },
    source: { kind: 'lines' },
  }
  const parts = { shards, slices: new FrontSlices(), transfers: new OpenTransfers(new Quota(bodyBytes)) }
  const onError = (error: unknown) => calls.push(String(error))
  new IngestReceiver({
    ...parts,
    sourceOf: () => lineSource,
    recordBytesMax: 300_000,
    badLinesMax: 0,
    onRefused: () => {},
    onError,
  }).receive(exchange, request, {
    id: 'root',
  } as never)
  return {
    calls,
    arrive: (part: Buffer | string, last: boolean) => {
      const bytes = Buffer.from(part)
      onData(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer, last)
    },
    waiting: () => outcomes.length,
    applyMutation: () =>
      outcomes.shift()?.({ kind: 'ingested', accepted: 1, rejected: 0, faults: [], agents: [] }),
  }
}

describe('the connection of a slow ingest', () => {
  it('is paused again with each part that arrives while it is paused', () => {
    const ingest = slowIngest({})
    const part = `${'{"n":1}'.padEnd(270_000)}\n`.repeat(4)
    ingest.arrive(part, false)
    ingest.calls.splice(0)
    ingest.arrive(part, false)
    expect(ingest.calls).toEqual(['pause'])
  })

  it('is not paused by the last part, so it is never resumed', async () => {
    const ingest = slowIngest({})
    ingest.arrive('{"n":1}\n', true)
    await expect.poll(() => ingest.waiting()).toBe(1)
    ingest.applyMutation()
    await expect.poll(() => ingest.calls).toEqual(['end'])
  })

  it('is not resumed before the answer if the last part is empty, after a part that paused it', async () => {
    const ingest = slowIngest({})
    // More than four chunks, so some wait for others.
    ingest.arrive(`${`{"n":1}`.padEnd(270_000)}\n`.repeat(6), false)
    expect(ingest.calls).toEqual(['pause'])
    ingest.arrive('', true)
    for (let done = 0; done < 6; done++) {
      await expect.poll(() => ingest.waiting()).toBeGreaterThan(0)
      expect(ingest.calls).not.toContain('resume')
      ingest.applyMutation()
    }
    await expect.poll(() => ingest.calls.slice(-2)).toEqual(['resume', 'end'])
  })

  it('is not resumed if the body is compressed', async () => {
    const ingest = slowIngest({ gzip: true })
    ingest.arrive(gzipSync('{"n":1}\n'), true)
    await expect.poll(() => ingest.waiting()).toBe(1)
    ingest.applyMutation()
    await expect.poll(() => ingest.calls).toEqual(['end'])
  })
})
