import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http'
import { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, scopedKey } from '../support/http/answers.js'
import { eventually } from '../support/eventually.js'
import { leftOut } from '../support/faults/rounds.js'
import { freePort } from '../support/server/free-port.js'
import { startServer, type TestServer } from '../support/server/server.js'

/* What docs/PIPELINES.md says, done with what stands there. */

const page = readFileSync(join(import.meta.dirname, '../../docs/PIPELINES.md'), 'utf8')
const shownUrl = 'http://127.0.0.1:8787'

let server: TestServer
let key = ''

beforeAll(async () => {
  server = await startServer()
  key = (await scopedKey(server, ['ingest'], ['logs-*'])).key
})
afterAll(() => server.stop())

/** The first block of a section, with the key in its place. */
function blockOf(title: string, url = server.url): string {
  const section = page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
  const block = /```\w+\n([\s\S]*?)```/.exec(section)?.[1] ?? ''
  expect(block, title).toContain('KEY')
  return block.replaceAll('KEY', key).replaceAll(shownUrl, url)
}

async function payloads(agent: string, of = server): Promise<Record<string, unknown>[]> {
  const body = { type: 'time_range', limit: 1_000, types: ['record', 'ingest/rejected'] }
  const { status, body: found } = await ask(of, `POST /v1/agents/${agent}/query`, { body })
  if (status === 404) return []
  return found.records.map((row: { payload: Record<string, unknown> }) => row.payload)
}

describe('curl', () => {
  it('sends what a program writes, and again without writing it again', async () => {
    const journal = '{"MESSAGE":"one","__CURSOR":"s=1"}\nno JSON\n{"MESSAGE":"two","__CURSOR":"s=2"}\n'
    const command = blockOf('curl').replace('journalctl -o json -n 100', `printf '%s' '${journal}'`)
    for (let time = 0; time < 2; time++) {
      const { stdout } = await promisify(execFile)('bash', ['-c', `set -o pipefail; ${command}`])
      expect(JSON.parse(stdout)).toMatchObject({ accepted: 2, rejected: 1, kept: 1 })
    }
    const code = 'validation_failed'
    expect(await payloads('logs-journal')).toMatchObject([
      { MESSAGE: 'one' },
      { line: 2, code },
      { MESSAGE: 'two' },
    ])
  })
})

describe('OpenTelemetry', () => {
  it('has a batch of logs written as one record, and again without writing it again', async () => {
    const block = blockOf('OpenTelemetry')
    const url = /logs_endpoint: (\S+)/.exec(block)?.[1] ?? ''
    const Authorization = /Authorization: (.+)/.exec(block)?.[1] ?? ''
    const exporter = new OTLPLogExporter({ url, headers: { Authorization } })
    const batch = new InMemoryLogRecordExporter()
    const logger = new LoggerProvider({
      processors: [new SimpleLogRecordProcessor({ exporter: batch })],
    }).getLogger('boiler')
    logger.emit({ body: 'too hot', attributes: { celsius: 91.5 } })
    logger.emit({ body: 'hotter', severityText: 'ERROR' })
    for (let time = 0; time < 2; time++) {
      const told = await new Promise((resolve) => exporter.export(batch.getFinishedLogRecords(), resolve))
      expect(told).toEqual({ code: 0 })
    }
    await exporter.shutdown()
    expect(await payloads('logs-otel')).toMatchObject([
      {
        resourceLogs: [
          {
            scopeLogs: [
              { scope: { name: 'boiler' }, logRecords: [{ body: { stringValue: 'too hot' } }, {}] },
            ],
          },
        ],
      },
    ])
  })
})

interface Client {
  title: string
  fixture: string
  contentType: string
  gzip: boolean
  credential: 'bearer' | 'basic'
  agent: string
}

const clients: Client[] = [
  {
    title: 'Vector',
    fixture: 'vector.body',
    contentType: 'application/json',
    gzip: true,
    credential: 'bearer',
    agent: 'logs-vector',
  },
  {
    title: 'Fluent Bit',
    fixture: 'fluent-bit.body',
    contentType: 'application/json',
    gzip: true,
    credential: 'basic',
    agent: 'logs-fluent-bit',
  },
  {
    title: 'Kafka Connect',
    fixture: 'kafka-connect.body',
    contentType: 'application/x-ndjson',
    gzip: false,
    credential: 'bearer',
    agent: 'logs-kafka',
  },
  {
    title: 'Redpanda Connect',
    fixture: 'redpanda-connect.body',
    contentType: 'application/json',
    gzip: false,
    credential: 'bearer',
    agent: 'logs-redpanda',
  },
]

describe('a body as the encoder writes it', () => {
  it.each(clients)('is accepted whole, and once, from $title', async (client) => {
    const path = /\/v1\/ingest\/[^"\s]+/.exec(blockOf(client.title))?.[0] ?? ''
    const text = readFileSync(join(import.meta.dirname, '../fixtures/pipelines', client.fixture), 'utf8')
    const basic = Buffer.from(`strandfast:${key}`).toString('base64')
    const headers = {
      'content-type': client.contentType,
      authorization: client.credential === 'basic' ? `Basic ${basic}` : `Bearer ${key}`,
      ...(client.gzip && { 'content-encoding': 'gzip' }),
    }
    const body = client.gzip ? gzipSync(text) : text
    for (let time = 0; time < 2; time++) {
      const answer = await fetch(server.url + path, { method: 'POST', headers, body })
      expect([answer.status, await answer.json()]).toMatchObject([200, { rejected: 0 }])
    }
    const large = (literal: string) => (client.contentType.endsWith('ndjson') ? `"${literal}"` : literal)
    const quoted = text.replaceAll(/\b\d{17,}\b(?!Z)/g, large)
    const sent: unknown = JSON.parse(
      quoted.startsWith('[') ? quoted : `[${quoted.trim().split('\n').join(',')}]`,
    )
    expect(await payloads(client.agent)).toEqual(sent)
  })
})

const syslogNg = ['/usr/sbin/syslog-ng', '/usr/local/sbin/syslog-ng'].find((path) => existsSync(path))
const missing = hasHttp() ? undefined : 'syslog-ng with its HTTP module (syslog-ng-core, syslog-ng-mod-http)'

/** Whether syslog-ng is there with the module that sends by HTTP. */
function hasHttp(): boolean {
  if (syslogNg === undefined) return false
  return execFileSync(syslogNg, ['--version'], { encoding: 'utf8' }).includes('http')
}

describe.skipIf(leftOut(missing))('syslog-ng', () => {
  it('delivers what came while the server was away, each message once', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-syslog-'))
    const port = await freePort()
    const syslogPort = await freePort()
    const env = { SERVICE_PORT: String(port) }
    let away = await startServer({ env })
    const { dataDir } = away
    key = (await scopedKey(away, ['ingest'], ['logs-*'])).key
    const block = blockOf('syslog-ng', away.url)
    await away.halt()
    const config = block.replace('port(5140)', `port(${syslogPort})`).replace('/var/lib/syslog-ng', directory)
    const logger = startSyslogNg(directory, config)
    try {
      const lines = ['one "quoted"', 'same', 'same', 'last \u00e9']
      const messages = lines.map((text) => `<34>1 2026-11-22T20:00:00Z web-1 app 7 - - ${text}\n`)
      await sendLines(syslogPort, messages.join(''), logger)
      away = await startServer({ env, dataDir })
      const arrived = async () => (await payloads('logs-syslog', away)).map((row) => row['MESSAGE'])
      await eventually(async () => (await arrived()).length >= lines.length)
      expect(await arrived()).toEqual(lines)
      expect((await payloads('logs-syslog', away))[0]).toMatchObject({
        HOST: 'web-1',
        PROGRAM: 'app',
        PID: '7',
      })
    } finally {
      logger.kill()
      await once(logger, 'exit')
      await away.stop()
      rmSync(directory, { recursive: true, force: true })
    }
  })
})

function startSyslogNg(directory: string, config: string): ChildProcess {
  const file = join(directory, 'syslog-ng.conf')
  writeFileSync(file, config)
  const own = [
    '-R',
    join(directory, 'persist'),
    '-p',
    join(directory, 'pid'),
    '-c',
    join(directory, 'control'),
  ]
  return spawn(syslogNg ?? '', ['-F', '--no-caps', '-f', file, ...own], { stdio: 'ignore' })
}

/** Sends lines once the logger listens. */
async function sendLines(port: number, text: string, logger: ChildProcess): Promise<void> {
  await eventually(async () => {
    expect(logger.exitCode).toBeNull()
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
    } catch {
      // Not listening yet.
      return false
    }
    socket.end(text)
    await once(socket, 'close')
    return true
  })
}
