import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { importTo } from '../support/shard/imports.js'
import { ForgedStrand } from '../support/proof/lying-prover.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { startServer, type TestServer } from '../support/server/server.js'

/* Exports that are made to be expensive by the owner of the keys of their strands. */

let server: TestServer

beforeAll(async () => {
  server = await startServer({ nodeOptions: probedOptions, env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const send = async (file: Buffer, headers: Record<string, string> = {}) => {
  const { status, body } = await importTo(server, file, { query: '?hold=true', headers })
  return status === 200 ? body.imported : body.code
}

/** A strand whose records are covered by one seal. */
function sealed(agent: string, count: number, body: (n: number) => string): ForgedStrand {
  const forged = new ForgedStrand(agent, 7)
  for (let n = 1; n < count; n++) forged.write(body(n), { sealedBy: count })
  return forged.write(body(count))
}

describe('records of one seal', () => {
  it('stall no other client while they are imported, however many they are', async () => {
    const file = sealed('many', 12_790, (n) => `{"n":${n}}`).export()
    await expectHarmless(server, async () => expect(await send(file)).toBe(12_791), bound)
  })

  it('stall no other client while they are imported, however large they are', async () => {
    const text = 'x'.repeat(500_000)
    const file = sealed('large', 60, (n) => `{"n":${n},"text":"${text}"}`).export()
    await expectHarmless(server, async () => expect(await send(file)).toBe(61), bound)
  })

  it('are refused without a stall if they are too many or too large', async () => {
    const text = 'x'.repeat(500_000)
    const many = sealed('too-many', 16_000, (n) => `{"n":${n}}`).export()
    const large = sealed('too-large', 120, (n) => `{"n":${n},"text":"${text}"}`).export()
    await expectHarmless(
      server,
      async () => {
        expect(await send(many)).toBe('import_rejected')
        expect(await send(gzipSync(large), { 'content-encoding': 'gzip' })).toBe('too_large')
      },
      bound,
    )
  })
})

describe('an export', () => {
  it('stalls no other client if its records erase all other records', async () => {
    const forged = new ForgedStrand('erasing', 7)
    for (let n = 1; n <= 2_000; n++) forged.write(`{"n":${n}}`)
    for (let n = 1; n <= 2_000; n++) forged.erase(n)
    const file = forged.export()
    await expectHarmless(server, async () => expect(await send(file)).toBe(4_001), bound)
  })

  it('stalls no other client if it was imported earlier, or if it is a line of brackets or only line feeds', async () => {
    const file = sealed('again', 5_000, (n) => `{"n":${n}}`).export()
    const manifest = file.subarray(0, file.indexOf('\n') + 1)
    await expectHarmless(
      server,
      async () => {
        expect(await send(file)).toBe(5_001)
        expect(await send(file)).toBe(0)
        const depth = Buffer.from('['.repeat(8_000_000))
        expect(await send(Buffer.concat([manifest, depth]))).toBe('import_rejected')
        const feeds = gzipSync(Buffer.alloc(64 << 20, '\n'))
        expect(await send(feeds, { 'content-encoding': 'gzip' })).toBe('import_rejected')
        const afterManifest = gzipSync(Buffer.concat([manifest, Buffer.alloc(64 << 20, '\n')]))
        expect(await send(afterManifest, { 'content-encoding': 'gzip' })).toBe('import_rejected')
      },
      bound,
    )
  })
})

/**
 * Records are buffered until their seal arrives, and each thread that handles them has a copy for some time.
 */
const bound = { memoryMebibytes: 512 }
