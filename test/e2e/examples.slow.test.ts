import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SignedStrand, textOf } from '../client/signed-strand.js'
import { checkpointVectors, vectorExport } from '../support/proof/checkpoint-vectors.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { freePort } from '../support/server/free-port.js'
import { type TestServer, call, startServer } from '../support/server/server.js'
import { startStaticServer } from '../support/server/static-server.js'

const examples = join(import.meta.dirname, '../../examples')
const vectors = join(import.meta.dirname, '../vectors')

interface Run {
  status: number | null
  output: string
}

function run(command: string, args: string[], options: { env?: object; input?: string } = {}): Run {
  const env = { PATH: process.env['PATH'], ...options.env }
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', input: options.input, env })
  return { status, output: stdout + stderr }
}

const knowsEd25519 = (python: string) => run(python, ['-c', 'import cryptography']).status === 0

/** A Python with Ed25519 support, from the path or the system. */
const python = ['python3', '/usr/bin/python3'].find(knowsEd25519) ?? 'python3'

/** -B writes no files next to the example; -S excludes packages beyond the standard library. */
const verify = (...args: string[]) => run(python, ['-B', join(examples, 'verify.py'), ...args])
const verifyBare = (...args: string[]) => run(python, ['-B', '-S', join(examples, 'verify.py'), ...args])

// Skipped with a warning if Python is missing, but never in CI.
const mayLeaveOut = process.env['CI'] !== 'true'
const noPython = mayLeaveOut && run(python, ['--version']).status !== 0
const noEd25519 = noPython || (mayLeaveOut && !knowsEd25519(python))
if (noEd25519) console.warn(noPython ? 'Skipped: no python3' : 'Skipped in part: no cryptography in python3')

let folder: string
let server: TestServer

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strandfast-examples-'))
  server = await startServer()
})

afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const ingest = (args: string[], input?: string) => {
  const env = { STRANDFAST_URL: server.url, STRANDFAST_KEY: server.rootKey }
  const options = input === undefined ? { env } : { env, input }
  return run(process.execPath, [join(examples, 'ingest-csv.mjs'), ...args], options)
}

async function payloadsOf(agent: string): Promise<unknown[]> {
  const body = { type: 'time_range', from_ts: 0, limit: 1_000 }
  const answer = await call(server, `POST /v1/agents/${agent}/query`, { body })
  return answer.body.records.map((record: { payload: unknown }) => record.payload)
}

async function exported(agent: string): Promise<{ file: string; text: string; publicKey: string }> {
  const { text } = await call(server, `GET /v1/strand/export?agent=${agent}`)
  const file = join(folder, `${agent}.ndjson`)
  writeFileSync(file, text)
  return { file, text, publicKey: (await call(server, `GET /v1/agents/${agent}/status`)).body.public_key }
}

describe('the example that ingests CSV', () => {
  it('writes one record per row, and reads quotes, line breaks, numbers and empty cells correctly', async () => {
    const file = join(folder, 'readings.csv')
    const rows = [
      '\uFEFFsensor,celsius,note',
      'a,20.5,"he said ""hi"", twice"',
      '007,,"two\nlines"',
      '',
      'Zoë,1e3,',
    ]
    writeFileSync(file, rows.join('\r\n'))
    const { status, output } = ingest([file, 'csv'])
    expect(output).toContain('Wrote 3 records to csv, refused 0')
    expect(status).toBe(0)
    expect(await payloadsOf('csv')).toEqual([
      { sensor: 'a', celsius: 20.5, note: 'he said "hi", twice' },
      { sensor: '007', note: 'two\nlines' },
      { sensor: 'Zoë', celsius: '1e3' },
    ])
  })

  it('streams a long file from standard input into an existing agent, and reports refused rows', async () => {
    const rows = Array.from({ length: 5_000 }, (_, n) =>
      n === 499 ? `${n},${'x'.repeat(300_000)}` : `${n},b`,
    )
    const first = ingest(['-', 'long'], 'n,text\n1,a\n')
    expect(first.status).toBe(0)
    const second = ingest(['-', 'long'], `n,text\n${rows.join('\n')}\n`)
    expect(second.output).toContain('row 500: too_large')
    expect(second.output).toContain('Wrote 4999 records to long, refused 1\nseq 2 to 5000')
    expect(second.status).toBe(1)
  })

  it('refuses a file with an unclosed quote, and a call without its arguments', () => {
    expect(ingest(['-', 'open'], 'a\n"b\n')).toMatchObject({ status: 1 })
    expect(ingest([])).toMatchObject({ status: 2, output: expect.stringContaining('Usage') })
  })
})

describe('the example of an agent whose tool calls are spans', () => {
  const env = () => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: server.url,
    OTEL_EXPORTER_OTLP_HEADERS: `Authorization=Bearer%20${server.rootKey}`,
    OTEL_SERVICE_NAME: 'tool-agent',
  })
  const node = (name: string, ...args: string[]) =>
    run(process.execPath, [join(examples, 'tool-agent', name), ...args], { env: env() })

  it('writes each call as a record, and proves it offline with its arguments and result', async () => {
    const files = mkdtempSync(join(folder, 'files-'))
    writeFileSync(join(files, 'one.txt'), 'a\n')
    writeFileSync(join(files, 'three.txt'), 'a\nb\nc\n')
    symlinkSync('missing', join(files, 'zero.txt'))
    const agent = node('agent.mjs', files)
    expect(agent).toMatchObject({
      status: 0,
      output: expect.stringContaining('three.txt has the most lines: 3'),
    })
    const traceId = /^Trace (\w+)$/m.exec(agent.output)?.[1]
    const query = { type: 'time_range', where: [{ field: 'traceId', op: 'eq', value: traceId }] }
    const { body } = await call(server, 'POST /v1/agents/tool-agent/query', { body: query })
    const spans: Record<string, unknown>[] = body.records.map((row: { payload: unknown }) => row.payload)
    const invoke = spans.find(({ name }) => name === 'invoke_agent longest-file')
    expect(spans.map(({ name }) => name).sort()).toEqual([
      'execute_tool count_lines',
      'execute_tool count_lines',
      'execute_tool count_lines',
      'execute_tool list_files',
      'invoke_agent longest-file',
    ])
    expect(new Set(spans.map(({ parentSpanId }) => parentSpanId))).toEqual(
      new Set([invoke?.['spanId'], undefined]),
    )
    const { file, text, publicKey } = await exported('tool-agent')
    const proved = node('prove.mjs', file, publicKey)
    expect(proved.status).toBe(0)
    const three = JSON.stringify({ file: join(files, 'three.txt') })
    expect(proved.output).toContain(`Proved: execute_tool count_lines ${three} 3\n`)
    expect(proved.output).toContain('failed: ENOENT')
    expect(proved.output.match(/^Proved: /gm)).toHaveLength(4)
    for (const { content_hash: hash } of body.records.slice(0, 1)) expect(proved.output).toContain(hash)
    writeFileSync(file, text.replace('{\\"stringValue\\":\\"3\\"}', '{\\"stringValue\\":\\"4\\"}'))
    expect(node('prove.mjs', file, publicKey)).toMatchObject({
      status: 1,
      output: expect.stringContaining('Not proved: The body is not the one committed to'),
    })
  })

  it('names the arguments that it expects', () => {
    expect(node('agent.mjs')).toMatchObject({ status: 2, output: expect.stringContaining('FOLDER') })
    expect(node('prove.mjs')).toMatchObject({ status: 2, output: expect.stringContaining('PUBLIC_KEY') })
  })
})

describe.skipIf(noPython)('the example that verifies in another language', () => {
  it('accepts an export of the server, and refuses a changed one', async () => {
    ingest(['-', 'proof'], 'n,name\n1,Zoë\n2,"a ""b"""\n3,c\n')
    const { file, text, publicKey } = await exported('proof')
    expect(verify(file, '--public-key', publicKey)).toMatchObject({
      status: 0,
      output: expect.stringContaining('agent proof, 4 records, the last one 3'),
    })
    const damaged = join(folder, 'damaged.ndjson')
    writeFileSync(damaged, text.replace('{\\"n\\":2', '{\\"n\\":5'))
    const found = verify(damaged, '--public-key', publicKey)
    expect(found).toEqual({ status: 1, output: 'WRONG: line 4: The body is not the one committed to\n' })
  })

  it('accepts a withheld body, except of a record that names a key', () => {
    const strand = new SignedStrand().append({ withheld: true }).append({ erased: true }).append()
    const file = join(folder, 'withheld.ndjson')
    writeFileSync(file, strand.exportText())
    const found = verify(file)
    expect([found.status, found.output]).toEqual([0, expect.stringContaining('1 erased, 1 withheld')])
    const [manifest = {}, genesis = {}, ...rest] = strand.exportLines()
    const withoutBody = { h: genesis['h'], sig: genesis['sig'], withheld: true }
    writeFileSync(file, textOf([manifest, withoutBody, ...rest]))
    const wrong = { status: 1, output: 'WRONG: line 2: A record that names a key is withheld\n' }
    expect(verify(file)).toEqual(wrong)
    for (const content of [
      { withheld: true, erased: true },
      { withheld: false },
      { withheld: true, body: '{}' },
    ]) {
      const line = { h: rest[0]?.['h'], sig: rest[0]?.['sig'], ...content }
      writeFileSync(file, textOf([manifest, genesis, line, ...rest.slice(1)]))
      expect(verify(file).output).toBe('WRONG: line 3: The line is neither a record nor the trailer\n')
    }
  })

  it('reports that it checked no signatures if there is no Ed25519', () => {
    const found = verifyBare(join(vectors, 'export.ndjson'))
    expect(found.status).toBe(3)
    expect(found.output).toContain('Signatures were NOT checked')
  })

  it.skipIf(noEd25519)('gives the verdicts of the frozen vectors on some exports', () => {
    const cases: { name: string; public_key: string; lines: string[]; expected: { ok: boolean } }[] =
      JSON.parse(readFileSync(join(vectors, 'exports.json'), 'utf8'))
    expect(cases.length).toBeGreaterThan(40)
    // test/proof/vectors.test.ts checks all vectors, in one process.
    for (const { name, public_key: publicKey, lines, expected } of cases.filter((_, n) => n % 12 === 0)) {
      const file = join(folder, 'vector.ndjson')
      writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
      const { status, output } = verify(file, '--public-key', publicKey)
      expect([name, status, output.includes('NOT checked')]).toEqual([name, expected.ok ? 0 : 1, false])
    }
  })

  it.skipIf(noEd25519)('gives the verdicts of the frozen vectors on some checkpoints', () => {
    const file = join(folder, 'strand.ndjson')
    const note = join(folder, 'kept.note')
    for (const vector of checkpointVectors.filter((_, n) => n % 6 === 0)) {
      const { name, public_key: publicKey, expected } = vector
      writeFileSync(file, `${vectorExport(vector.export).join('\n')}\n`)
      writeFileSync(note, vector.note)
      const { status, output } = verify(file, '--public-key', publicKey, '--checkpoint', note)
      expect([name, status]).toEqual([name, expected.ok ? 0 : 1])
      const line = expected.ok
        ? `It begins with the ${expected.size} records of the checkpoint`
        : expected.reason.split(', ')[0]
      expect(output).toContain(line)
    }
    for (const other of ['x', `${vectorExport('whole')[1]}`]) {
      writeFileSync(note, other)
      expect(verify(file, '--checkpoint', note)).toMatchObject({
        status: 1,
        output: 'WRONG: The checkpoint is not a valid signed note\n',
      })
    }
  })
})

describe.skipIf(noBrowser)('the example page', () => {
  it('shows records as they are written, and verifies the strand', async () => {
    const pages = await startStaticServer()
    const env = { SERVICE_CORS_ORIGINS: pages.origin, SERVICE_PORT: String(await freePort()) }
    const service = await startServer({ env })
    const browser = await sharedBrowser()
    try {
      const write = (data: object) => call(service, 'POST /v1/collections/shown/records', { body: { data } })
      await write({ text: '<img src=x onerror=alert(1)>' })
      const page = await browser.newPage()
      const complaints: string[] = []
      page.on('pageerror', (error) => complaints.push(error.message))
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
      await page.goto(`${pages.origin}/examples/live-page/`)
      await page.getByLabel('Service').fill(service.url)
      await page.getByLabel('Agent').fill('shown')
      await page.getByLabel('API key').fill(service.rootKey)
      await page.getByRole('button', { name: 'Connect' }).click()
      await page.getByText('Live: shown').waitFor()
      await write({ text: 'while you look' })
      await page.getByText('while you look').waitFor()
      const bodies = await page.locator('tbody td:nth-child(4)').allTextContents()
      expect(bodies).toEqual(['{"text":"while you look"}', '{"text":"<img src=x onerror=alert(1)>"}'])
      const status = await call(service, 'GET /v1/agents/shown/status')
      await page.getByLabel('Public key that you trust').fill(status.body.public_key)
      await page.getByRole('button', { name: 'Verify' }).click()
      await page.getByText('3 records are valid for the given key').waitFor()
      await page.getByLabel('Public key that you trust').fill('00'.repeat(32))
      await page.getByRole('button', { name: 'Verify' }).click()
      await page.getByText('No record is signed by the key given').waitFor()
      expect(complaints).toEqual([])
    } finally {
      await service.stop()
      pages.stop()
    }
  })
})
