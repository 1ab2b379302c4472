import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SignedStrand, textOf, type Line } from '../../client/signed-strand.js'
import { verifyExport } from '../../../src/proof/node/verify-export.js'
import { checkedCall, headOf, newAgent, scopedKey } from '../../support/http/answers.js'
import { importTo } from '../../support/shard/imports.js'
import { startServer, type TestServer } from '../../support/server/server.js'

/*
 * Strands of another implementation, each with one fault: the import is refused with the line and record, and
 * leaves nothing.
 */

let server: TestServer
let strandCount = 0

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  await newAgent(server, 'there')
})
afterAll(() => server.stop())

/** The seed of a key of a generated strand. */
const seedOf = (byte: number) => ({ 'strandfast-agent-seed': Buffer.alloc(32, byte).toString('hex') })

const strand = () => new SignedStrand(`made-${strandCount++}`)

/** Imports lines with the seed of a key. */
const send = (lines: string | readonly Line[], byte = 1) =>
  importTo(server, typeof lines === 'string' ? lines : textOf(lines), { headers: seedOf(byte) })

async function refusedOf(lines: string | readonly Line[]): Promise<[number, string, unknown, unknown]> {
  const { status, body } = await send(lines)
  return [status, body.code, body.line, body.seq]
}

describe('a strand of another implementation', () => {
  it('is imported with its sealed and erased records and rotated keys, and continues', async () => {
    const whole = strand()
      .append()
      .append({ sealedBy: 4 })
      .append({ sealedBy: 4 })
      .append()
      .append({ erased: true })
      .rotate(40)
      .append()
    const { status, body } = await send(whole.exportText(), 40)
    expect([status, body.imported, body.open, body.record_count]).toEqual([200, 8, true, 8])
    const { text } = await checkedCall(server, `GET /v1/strand/export?agent=${whole.agent}`)
    const verified = await verifyExport(text.trimEnd().split('\n'))
    // The export has no record of the erasure, as if it had ended before it.
    expect(verified).toMatchObject({ ok: true, imported: 8, unexplained: { count: 1, firstSeq: 5 } })
    const written = await checkedCall(server, `POST /v1/agents/${whole.agent}/records`, {
      body: { data: { n: 1 } },
    })
    expect([written.status, written.body.seq, written.body.parent_hash]).toEqual([201, 9, body.chain_head])
  })
})

/** The position of a fault. */
type FaultPosition = [line: number | undefined, seq: number | undefined]

describe('an import with a fault', () => {
  const plain = () => strand().append().append().append()
  const header = (lines: Line[], line: number, [from, to]: [string, string]) =>
    lines.with(line, { ...lines[line], h: String(lines[line]?.['h']).replace(from, to) })
  const put = (lines: Line[], line: number, members: Line) => lines.with(line, { ...lines[line], ...members })
  const zeros = '0'.repeat(64)

  async function refused(lines: readonly Line[], position: FaultPosition): Promise<void> {
    const agent = `made-${strandCount - 1}`
    expect(await refusedOf(lines)).toEqual([422, 'import_rejected', ...position])
    expect(await headOf(server, agent)).toBeUndefined()
  }

  // Lines 2 to 5 contain records 0 to 3, line 6 the trailer.
  it.each<[string, (lines: Line[]) => Line[], FaultPosition]>([
    ['no manifest', (lines) => lines.slice(1), [1, undefined]],
    ['another format', (lines) => put(lines, 0, { format: 'x' }), [1, undefined]],
    ['an agent that none can have', (lines) => put(lines, 0, { agent: 'a b' }), [undefined, undefined]],
    ['another strand', (lines) => put(lines, 0, { strand: zeros }), [2, 0]],
    ['another agent', (lines) => put(lines, 0, { agent: 'other' }), [2, 0]],
    ['a record left out', (lines) => lines.toSpliced(2, 1), [3, 1]],
    ['a record twice', (lines) => lines.toSpliced(3, 0, lines[2] ?? {}), [4, 2]],
    ['another order', (lines) => lines.with(2, lines[3] ?? {}).with(3, lines[2] ?? {}), [3, 1]],
    ['a header of another form', (lines) => header(lines, 2, ['v1', 'v2']), [3, 1]],
    ['another clock', (lines) => header(lines, 2, ['-0000', '-0001']), [3, 1]],
    ['another body', (lines) => put(lines, 3, { body: '{"seq":9}' }), [4, 2]],
    ['another salt', (lines) => put(lines, 3, { salt: 'f'.repeat(32) }), [4, 2]],
    ['another signature', (lines) => put(lines, 4, { sig: '0'.repeat(128) }), [5, 3]],
    ['no signature', (lines) => put(lines, 2, { sig: undefined }), [3, 1]],
    ['an invalid line', (lines) => lines.toSpliced(3, 0, {}), [4, 2]],
    ['a line behind the trailer', (lines) => [...lines, lines[3] ?? {}], [7, 4]],
    ['a trailer of another head', (lines) => put(lines, 5, { chain_head: zeros }), [6, 4]],
    ['a trailer of other records', (lines) => put(lines, 5, { records: 9 }), [6, 4]],
    ['a tail cut off', (lines) => lines.toSpliced(4, 1), [5, 3]],
    [
      'a checkpoint of another strand',
      (lines) => put(lines, 5, { checkpoint: new SignedStrand('x').exportLines().at(-1)?.['checkpoint'] }),
      [6, 4],
    ],
  ])('is refused whole, and the answer names the line: %s', async (_what, change, position) => {
    await refused(change(plain().exportLines()), position)
  })

  const nested = `{"a":${'['.repeat(64)}${']'.repeat(64)}}`
  const ballot = { proposal: zeros, proposal_seq: 0, principal: 'root' }

  it.each<[string, Parameters<SignedStrand['append']>[0]]>([
    ['a withheld body', { withheld: true }],
    ['a record of the server erased', { type: 'sys/zone', erased: true }],
    ['a second genesis record', { type: 'sys/genesis' }],
    ['an unknown record type of the server', { type: 'sys/other' }],
    ['an unknown edge record', { type: 'edge/other' }],
    ['a body that is a list', { body: [1] }],
    ['a body that is not JSON', { text: '{"a":' }],
    ['a body that is not canonical', { text: '{"b":1,"a":2}' }],
    ['a key twice in a body', { text: '{"a":1,"a":1}' }],
    ['a body that is nested too deep', { text: nested }],
    ['a body that is too long', { body: { a: 'x'.repeat(1_048_576) } }],
    ['a tombstone of what is not there', { type: 'sys/tombstone', body: { target: zeros, target_seq: 0 } }],
    ['an erasure of a later record', { type: 'sys/erase', body: { target: zeros, target_seq: 5 } }],
    ['an unknown zone', { type: 'sys/zone', body: { zone: 'wild' } }],
    ['invalid policies', { type: 'sys/policy', body: { policies: [{}] } }],
    [
      'an edge of another agent',
      { type: 'edge/add', body: { src: 'there', dst: 'there', edge_type: 'x', weight: 1 } },
    ],
    ['a vote on nothing', { type: 'sys/vote', body: { ...ballot, vote: 'approve' } }],
    ['an end of nothing', { type: 'sys/applied', body: { ...ballot, state: 'applied' } }],
    ['a proposal of nothing', { type: 'sys/proposal', body: { action: 'delete' } }],
  ])('is refused whole, and the answer names the line: %s, by a signed record', async (_what, plan) => {
    await refused(strand().append(plan).exportLines(), [3, 1])
  })

  it('is refused if it is empty, and if its bytes are not UTF-8', async () => {
    expect(await refusedOf('')).toEqual([422, 'import_rejected', 1, undefined])
    const bytes = Buffer.from(plain().exportText())
    bytes[bytes.indexOf('seq\\":2') + 1] = 0xff
    const answer = await importTo(server, bytes, { headers: seedOf(1) })
    expect([answer.status, answer.body.line, answer.body.seq]).toEqual([422, 4, 2])
  })

  it('is refused if it deletes or erases a record of the server', async () => {
    for (const type of ['sys/tombstone', 'sys/erase']) {
      const zoned = strand().append({ type: 'sys/zone', body: { zone: 'free' } })
      const target = { target: zoned.head, target_seq: 1 }
      expect(await refusedOf(zoned.append({ type, body: target }).exportLines())).toEqual([
        422,
        'import_rejected',
        4,
        2,
      ])
    }
  })
})

describe('a clock', () => {
  it('is refused temporarily if it is further ahead than the server allows', async () => {
    for (const secs of [5, 59, 120]) {
      const ahead = strand().append({ ms: Date.now() + secs * 1_000 })
      const { status, body, headers } = await send(ahead.exportText())
      expect([status, body.code]).toEqual([503, 'clock_skew'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(secs)
      expect(await headOf(server, ahead.agent)).toBeUndefined()
    }
  })

  it('advances the clock of the shard if it is a little ahead, also across a restart', async () => {
    const first = await startServer({ env: { SERVICE_SHARDS: '1' } })
    const ahead = strand().append({ ms: Date.now() + 900 })
    expect((await importTo(first, ahead.exportText(), { headers: seedOf(1) })).status).toBe(200)
    await first.halt()
    const again = await startServer({ env: { SERVICE_SHARDS: '1' }, dataDir: first.dataDir })
    try {
      const path = `/v1/agents/${ahead.agent}`
      const { body: before } = await checkedCall(again, `GET ${path}/head`)
      for (let n = 0; n < 2; n++) {
        const { body } = await checkedCall(again, `POST ${path}/records`, { body: { data: { n } } })
        expect(body.timestamp_hlc > before.timestamp_hlc).toBe(true)
      }
    } finally {
      await again.stop()
    }
  })
})

describe('an unfinished import', () => {
  const importedStrand = async (byte: number): Promise<SignedStrand> => {
    const own = new SignedStrand(`made-${strandCount++}`, byte).append()
    const held = await importTo(server, own.exportText(), { query: '?hold=true' })
    expect([held.status, held.body.open]).toEqual([200, false])
    return own
  }

  it('cannot be continued with a deletion of a record that the strand does not have', async () => {
    const own = await importedStrand(56)
    for (const target_seq of [0, 1]) {
      own.append({ type: 'sys/tombstone', body: { target: '0'.repeat(64), target_seq } })
      const { status, body } = await send(own.exportLines(2))
      expect([status, body.code, body.line, body.seq]).toEqual([422, 'import_rejected', 2, 2])
      expect((await headOf(server, own.agent))?.seq).toBe(1)
    }
  })

  it('cannot be continued with a key that it never had', async () => {
    const own = await importedStrand(50)
    const { status, body } = await send(own.usurp(51).append().exportLines(2))
    expect([status, body.code, body.line, body.seq]).toEqual([422, 'import_rejected', 2, 2])
    expect((await headOf(server, own.agent))?.seq).toBe(1)
  })

  it('cannot be continued with an earlier clock', async () => {
    const own = await importedStrand(52)
    const { status, body } = await send(own.append({ ms: 5 }).exportLines(2))
    expect([status, body.code, body.line, body.seq]).toEqual([422, 'import_rejected', 2, 2])
    expect((await headOf(server, own.agent))?.seq).toBe(1)
  })

  it('cannot be continued with records of another strand', async () => {
    const own = await importedStrand(54)
    const other = new SignedStrand(own.agent, 55).append().append()
    const { status, body } = await send(other.exportLines(2))
    expect([status, body.code]).toEqual([409, 'agent_exists'])
    expect((await headOf(server, own.agent))?.seq).toBe(1)
  })
})

describe('an edge of an import', () => {
  it('requires access to its destination', async () => {
    const own = new SignedStrand(`made-${strandCount++}`, 70)
    own.append({ type: 'edge/add', body: { src: own.agent, dst: 'there', edge_type: 'knows', weight: 1 } })
    const limited = await scopedKey(server, ['agents:admin'], [own.agent])
    const byKey = (key: string, lines: string) => importTo(server, lines, { key, headers: seedOf(70) })
    const refused = await byKey(limited.key, own.exportText())
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
    expect(refused.body.detail).toContain('"there"')
    expect(await headOf(server, own.agent)).toBeUndefined()
    const wider = await scopedKey(server, ['agents:admin'], [own.agent, 'the*'])
    expect((await byKey(wider.key, own.exportText())).status).toBe(200)
  })
})

describe('an incomplete export', () => {
  it('leaves nothing, and is imported when it is sent completely', async () => {
    const own = new SignedStrand(`made-${strandCount++}`, 60).append().append().append()
    const lines = own.exportLines()
    const { status, body } = await send(lines.slice(0, -1))
    expect([status, body.code, body.line, body.imported]).toEqual([422, 'import_rejected', 6, 0])
    expect(await headOf(server, own.agent)).toBeUndefined()
    const sealed = own.append({ sealedBy: 6 }).append({ sealedBy: 6 })
    const unsealed = await send(sealed.exportLines().slice(0, -1))
    expect([unsealed.status, unsealed.body.imported, unsealed.body.skipped]).toEqual([422, 0, 0])
    const whole = await send(sealed.append().exportText(), 60)
    expect([whole.status, whole.body.imported, whole.body.skipped]).toEqual([200, 7, 0])
    const written = await checkedCall(server, `POST /v1/agents/${own.agent}/records`, { body: { data: {} } })
    expect(written.status).toBe(201)
  })
})
