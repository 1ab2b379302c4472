import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { checkedCall, scopedKey } from '../support/http/answers.js'
import {
  collectorLogRecords,
  collectorLogs,
  collectorSpan,
  collectorSpans,
} from '../support/http/collector.js'
import { eventually } from '../support/eventually.js'
import { leftOut } from '../support/faults/rounds.js'
import { freePort } from '../support/server/free-port.js'
import { startServer, type TestServer } from '../support/server/server.js'

/* Runs the configurations and commands in docs/PIPELINES.md. */

const page = readFileSync(join(import.meta.dirname, '../../docs/PIPELINES.md'), 'utf8')
const shownUrl = 'http://127.0.0.1:8787'

let server: TestServer
let key = ''

beforeAll(async () => {
  server = await startServer()
  key = (await scopedKey(server, ['ingest'], ['logs-*'])).key
})
afterAll(() => server.stop())

/** A code block of a section, by default the first, with the address and the key filled in. */
function blockOf(title: string, { url = server.url, index = 0, by = key } = {}): string {
  const section = page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
  const block = [...section.matchAll(/```\w+\n([\s\S]*?)```/g)][index]?.[1] ?? ''
  expect(block, title).not.toBe('')
  // KEY in the name of a variable is not replaced.
  return block.replaceAll(/\bKEY\b/g, by).replaceAll(shownUrl, url)
}

/** A key for `strandfast write` instead of the one for ingest. */
const writerKey = async (of: TestServer) => (await scopedKey(of, ['records:write'], ['logs-*'])).key

/** A folder with a command `strandfast` that runs the built program. */
function folderWithCommand(): string {
  const folder = mkdtempSync(join(tmpdir(), 'strandfast-pipelines-'))
  const program = join(import.meta.dirname, '../../dist/program/strandfast.js')
  const text = `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`
  writeFileSync(join(folder, 'strandfast'), text, { mode: 0o755 })
  return folder
}

async function payloads(agent: string, of = server): Promise<Record<string, unknown>[]> {
  const body = { type: 'time_range', limit: 1_000, types: ['record', 'ingest/rejected'] }
  const { status, body: found } = await checkedCall(of, `POST /v1/agents/${agent}/query`, { body })
  if (status === 404) return []
  return found.records.map((row: { payload: Record<string, unknown> }) => row.payload)
}

describe('curl', () => {
  it('sends the output of a program, and a repeated upload writes no duplicates', async () => {
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

describe('a client that sends its password only after a challenge', () => {
  const url = () => `${server.url}/v1/ingest/logs-challenged?dedupe=body`
  it.each([
    [
      'curl',
      () => ['--anyauth', '-sS', '--fail-with-body', '-u', `any:${key}`, '--data-binary', '{"n":1}', url()],
    ],
    ['wget', () => ['-qO-', '--user=any', `--password=${key}`, '--post-data={"n":1}', url()]],
  ])('gets a challenge: %s', async (program, args) => {
    const header = '--header=Content-Type: application/json'
    const { stdout } = await promisify(execFile)(program, [
      ...args(),
      ...(program === 'curl' ? ['-H', 'Content-Type: application/json'] : [header]),
    ])
    expect(JSON.parse(stdout)).toEqual(expect.any(Object))
    expect(await payloads('logs-challenged')).toEqual([{ n: 1 }])
  })
})

/** The settings of a block of `export` lines, with the key filled in. */
function environmentOf(title: string, by: string): Record<string, string> {
  const lines = blockOf(title, { index: title === 'OpenTelemetry' ? 0 : 1 }).matchAll(/^export (\w+)=(.*)$/gm)
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value.replace('KEY', by)]))
}

async function telemetryOf(agent: string, type: string): Promise<Record<string, unknown>[]> {
  const query = { type: 'time_range', types: [type], limit: 100 }
  const { body } = await checkedCall(server, `POST /v1/agents/${agent}/query`, { body: query })
  return body.records.map((row: { payload: Record<string, unknown> }) => row.payload)
}

describe('OpenTelemetry', () => {
  it.each(['OpenTelemetry', 'AI agents and their tools'])(
    'delivers logs of an SDK with the variables of the chapter %s alone',
    async (title) => {
      const agent = `logs-sdk-${title === 'OpenTelemetry' ? 1 : 2}`
      const variables = environmentOf(title, key)
      expect(Object.keys(variables)).toContain('OTEL_EXPORTER_OTLP_HEADERS')
      for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
      const provider = new LoggerProvider({
        resource: resourceFromAttributes({ 'service.name': agent }),
        processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() })],
      })
      const logger = provider.getLogger('boiler')
      logger.emit({ body: 'too hot', attributes: { celsius: 91.5 } })
      logger.emit({ body: 'hotter', severityText: 'ERROR' })
      await provider.shutdown()
      vi.unstubAllEnvs()
      expect(await telemetryOf(agent, 'otel/log')).toMatchObject([
        {
          body: { stringValue: 'too hot' },
          attributes: [{ key: 'celsius', value: { doubleValue: 91.5 } }],
          scope: { name: 'boiler' },
        },
        { body: { stringValue: 'hotter' }, severityText: 'ERROR' },
      ])
    },
  )

  it('accepts the bytes of a Collector once, at the addresses of its configuration', async () => {
    const block = blockOf('OpenTelemetry Collector', {
      by: (await scopedKey(server, ['ingest'], ['checkout'])).key,
    })
    const headers = {
      authorization: /Authorization: (.+)/.exec(block)?.[1] ?? '',
      'content-type': 'application/x-protobuf',
      'content-encoding': /compression: (\w+)/.exec(block)?.[1] ?? '',
    }
    for (const [name, body] of [
      ['logs_endpoint', collectorLogs],
      ['traces_endpoint', collectorSpans],
    ] as const) {
      const url = new RegExp(`${name}: (\\S+)`).exec(block)?.[1] ?? ''
      for (let time = 0; time < 2; time++)
        expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200)
    }
    expect(await telemetryOf('checkout', 'otel/log')).toEqual(collectorLogRecords)
    expect(await telemetryOf('checkout', 'otel/span')).toEqual([collectorSpan])
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

describe('a body as encoded by the client', () => {
  it.each(clients)('is accepted completely and once, from $title', async (client) => {
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

describe('winston', () => {
  it('delivers a complete batch', async () => {
    const block = blockOf('winston')
    const path = /path: '([^']+)'/.exec(block)?.[1] ?? ''
    const authorization = /Authorization: '([^']+)'/.exec(block)?.[1] ?? ''
    const body = readFileSync(join(import.meta.dirname, '../fixtures/pipelines/winston.body'), 'utf8')
    const headers = { authorization, 'content-type': 'application/json' }
    const answer = await fetch(server.url + path, { method: 'POST', headers, body })
    expect([answer.status, await answer.json()]).toMatchObject([200, { accepted: 2, rejected: 0 }])
    expect(await payloads('logs-winston')).toEqual(JSON.parse(body))
  })
})

describe('pino', () => {
  it('delivers its lines through strandfast write', async () => {
    const folder = folderWithCommand()
    const app = `require(${JSON.stringify(join(import.meta.dirname, '../../node_modules/pino'))})().info({ n: 1 }, 'hello')`
    writeFileSync(join(folder, 'app.js'), `${app}\nconsole.log('no JSON')\n`)
    const command = blockOf('pino', { by: await writerKey(server) })
    const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` }
    const ran = promisify(execFile)('bash', ['-c', command], { cwd: folder, env })
    // The line that is not JSON is reported, and the exit code is 1. Which of the two lines comes first
    // depends on pino.
    const stderr = await ran.then(
      () => '',
      (error: { stderr: string }) => error.stderr,
    )
    rmSync(folder, { recursive: true })
    expect(stderr).toMatch(/^Line [12] was not written/)
    expect(await payloads('logs-pino')).toMatchObject([{ level: 30, n: 1, msg: 'hello' }])
  })
})

// Debian installs either rsyslog or syslog-ng, so .ci/install unpacks rsyslog to another directory.
const rsyslog = ['/opt/rsyslog/usr/sbin/rsyslogd', '/usr/sbin/rsyslogd'].find((path) => existsSync(path))

describe.skipIf(leftOut(rsyslog === undefined ? 'rsyslogd (rsyslog)' : undefined))('rsyslog', () => {
  it('delivers each message once despite a kill of the server, and at least once despite a kill of the program', async () => {
    const folder = folderWithCommand()
    const port = await freePort()
    const syslogPort = await freePort()
    const env = { SERVICE_PORT: String(port) }
    let killed = await startServer({ env })
    const { dataDir } = killed
    const about = { url: killed.url, by: await writerKey(killed) }
    const script = join(folder, 'strandfast.sh')
    const command = blockOf('rsyslog', { ...about, index: 1 })
    writeFileSync(script, command.replace('\n', `\nexport PATH="${folder}:$PATH"\n`), { mode: 0o700 })
    const config = blockOf('rsyslog', about)
      .replace('port="5141"', `port="${syslogPort}"`)
      .replace('/etc/rsyslog.d/strandfast.sh', script)
      .replace('/var/spool/rsyslog', folder)
    const logger = startRsyslog(folder, config)
    const numbers = (from: number, count: number) => Array.from({ length: count }, (_none, n) => from + n)
    const send = (ns: number[]) =>
      sendLines(
        syslogPort,
        ns.map((n) => `<34>1 2026-11-22T20:00:00Z web-1 app 7 - - n=${n} "é"\n`).join(''),
        logger,
      )
    const arrived = async () =>
      (await payloads('logs-rsyslog', killed)).map((row) => Number(/n=(\d+)/.exec(`${row['message']}`)?.[1]))
    try {
      await send(numbers(0, 200))
      await eventually(async () => (await arrived()).length >= 20)
      await killed.halt('SIGKILL')
      killed = await startServer({ env, dataDir })
      await eventually(async () => (await arrived()).length >= 200)
      expect(await arrived()).toEqual(numbers(0, 200))
      const first = (await payloads('logs-rsyslog', killed))[0]
      expect(first).toMatchObject({
        host: 'web-1',
        program: 'app',
        pid: '7',
        severity: 'crit',
        message: 'n=0 "é"',
      })
      await send(numbers(200, 50))
      await eventually(async () => (await arrived()).length >= 210)
      killBelow(logger.pid ?? 0)
      await eventually(async () => new Set(await arrived()).size === 250)
      await sendLines(
        syslogPort,
        Buffer.from('<34>1 2026-11-22T20:00:00Z web-1 app 7 - - n=250 é\n', 'latin1'),
        logger,
      )
      await eventually(async () => (await payloads('logs-rsyslog', killed)).at(-1)?.['message'] === 'n=250 ?')
    } finally {
      logger.kill()
      await once(logger, 'exit')
      await killed.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

function startRsyslog(folder: string, config: string): ChildProcess {
  const file = join(folder, 'rsyslog.conf')
  writeFileSync(file, config)
  const lib = join(rsyslog ?? '', '../../lib')
  const modules = readdirSync(lib)
    .map((name) => join(lib, name, 'rsyslog'))
    .find((path) => existsSync(path))
  return spawn(rsyslog ?? '', ['-n', '-M', modules ?? '', '-f', file, '-i', join(folder, 'pid')], {
    stdio: 'ignore',
  })
}

/** Kills the descendants of a process. */
function killBelow(pid: number): void {
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const children = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').match(/\d+/g) ?? []
    for (const child of children.map(Number)) {
      killBelow(child)
      process.kill(child, 'SIGKILL')
    }
  }
}

describe('a batch that is one object', () => {
  it.each([
    ['Container registry', 'registry', 'application/vnd.docker.distribution.events.v2+json', 'events'],
    ['Kubernetes audit', 'kubernetes', 'application/json', 'items'],
  ])(
    'becomes one record for each event, without duplicates, from a %s',
    async (title, ...[name, contentType, member]) => {
      const block = blockOf(title)
      const path = /\/v1\/ingest\/[^"\s]+/.exec(block)?.[0] ?? ''
      const authorization = /Bearer [^"\s\]]+/.exec(block)?.[0] ?? ''
      const body = readFileSync(join(import.meta.dirname, `../fixtures/pipelines/${name}.body`), 'utf8')
      const headers = { 'content-type': contentType, authorization }
      for (let time = 0; time < 2; time++) {
        const answer = await fetch(server.url + path, { method: 'POST', headers, body })
        expect([answer.status, await answer.json()]).toMatchObject([200, { accepted: 2, rejected: 0 }])
      }
      expect(await payloads(`logs-${name}`)).toEqual(JSON.parse(body)[member])
    },
  )
})

const syslogNg = ['/usr/sbin/syslog-ng', '/usr/local/sbin/syslog-ng'].find((path) => existsSync(path))
const missing = hasHttp() ? undefined : 'syslog-ng with its HTTP module (syslog-ng-core, syslog-ng-mod-http)'

/** Whether syslog-ng is installed with its HTTP module. */
function hasHttp(): boolean {
  if (syslogNg === undefined) return false
  return execFileSync(syslogNg, ['--version'], { encoding: 'utf8' }).includes('http')
}

describe.skipIf(leftOut(missing))('syslog-ng', () => {
  it('delivers messages from the time when the server was stopped, each once', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-syslog-'))
    const port = await freePort()
    const syslogPort = await freePort()
    const env = { SERVICE_PORT: String(port) }
    let receiver = await startServer({ env })
    const { dataDir } = receiver
    const block = blockOf('syslog-ng', {
      url: receiver.url,
      by: (await scopedKey(receiver, ['ingest'], ['logs-*'])).key,
    })
    await receiver.halt()
    const config = block.replace('port(5140)', `port(${syslogPort})`).replace('/var/lib/syslog-ng', directory)
    const logger = startSyslogNg(directory, config)
    try {
      const lines = ['one "quoted"', 'same', 'same', 'last \u00e9']
      const messages = lines.map((text) => `<34>1 2026-11-22T20:00:00Z web-1 app 7 - - ${text}\n`)
      await sendLines(syslogPort, messages.join(''), logger)
      receiver = await startServer({ env, dataDir })
      const arrived = async () => (await payloads('logs-syslog', receiver)).map((row) => row['MESSAGE'])
      await eventually(async () => (await arrived()).length >= lines.length)
      expect(await arrived()).toEqual(lines)
      expect((await payloads('logs-syslog', receiver))[0]).toMatchObject({
        HOST: 'web-1',
        PROGRAM: 'app',
        PID: '7',
      })
    } finally {
      logger.kill()
      await once(logger, 'exit')
      await receiver.stop()
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

/** Sends lines when the logger listens. */
async function sendLines(port: number, text: string | Buffer, logger: ChildProcess): Promise<void> {
  await eventually(async () => {
    expect(logger.exitCode).toBeNull()
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
    } catch {
      // The logger does not listen yet.
      return false
    }
    socket.end(text)
    await once(socket, 'close')
    return true
  })
}
