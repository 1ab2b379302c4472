import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkedCall } from '../support/http/answers.js'
import { eventually } from '../support/eventually.js'
import { leftOut } from '../support/faults/rounds.js'
import { freePort } from '../support/server/free-port.js'
import { callAs } from '../support/http/call-as.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { startServer, type TestServer } from '../support/server/server.js'

/* Runs the configurations in docs/NETWORK.md, with real proxies. */

const page = readFileSync(join(import.meta.dirname, '../../docs/NETWORK.md'), 'utf8')
const section = page.split('\n## Behind a proxy\n')[1]?.split('\n## ')[0] ?? ''

let folder = ''
let server: TestServer
let proxyUrl = ''
let started: ChildProcess[] = []
let env: Record<string, string> = {}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strandfast-proxies-'))
  started = []
  env = { SERVICE_PORT: String(await freePort()), SERVICE_TRUSTED_PROXIES: '127.0.0.1/32' }
  server = await startServer({ env })
  proxyUrl = `http://127.0.0.1:${await freePort()}`
})
afterEach(async () => {
  for (const child of started) {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  await server.stop()
  rmSync(folder, { recursive: true })
})

/** The code block of the section in a language, with the ports of this test. */
function blockOf(language: string): string {
  const block = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(section)?.[1] ?? ''
  expect(block).toContain('127.0.0.1:8787')
  return block.replaceAll('127.0.0.1:8787', new URL(server.url).host)
}

function start(program: string, args: string[]): ChildProcess {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  started.push(child)
  return child
}

/** Waits until the proxy forwards requests. */
const untilReady = () =>
  eventually(async () => (await fetch(`${proxyUrl}/readyz`).catch(() => undefined))?.status === 200)

function isMissing(program: string): string | undefined {
  try {
    execFileSync(program, ['-v'], { stdio: 'ignore' })
    return undefined
  } catch {
    return program
  }
}

async function startNginx(): Promise<void> {
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
     http { access_log off; ${own.join(' ')} server { listen ${new URL(proxyUrl).host}; ${blockOf('nginx')} } }`,
  )
  start('nginx', ['-c', file, '-e', `${folder}/error.log`])
  await untilReady()
}

/** Replaces the server by one with sign-in and without mail, on the same port. */
async function restartWithSignIn(): Promise<void> {
  await server.halt()
  server = await startAuthServer({ env: { ...env, SERVICE_TRUSTED_PROXIES: '' } })
}

/**
 * The answers to a client of the proxy that requests a magic link, for a public host and for hosts of the
 * server's machine. A program of that machine gets the token.
 */
async function answersByProxy(): Promise<unknown[]> {
  const path = '/v1/auth/magic-link/send'
  const body = { email: 'owner@example.org' }
  const send = async (url: string, headers: Record<string, string>) =>
    (await callAs({ ...server, url }, { path, body, headers })).body
  const direct = await send(server.url, {})
  expect(direct).toMatchObject({ sent: false, token: expect.any(String) })
  return Promise.all(
    ['records.example.org', 'localhost', '127.0.0.1:8787'].map((host) => send(proxyUrl, { host })),
  )
}

describe.skipIf(leftOut(isMissing('nginx')))('behind nginx', () => {
  it('a client gets no magic link in an answer', async () => {
    await startNginx()
    await restartWithSignIn()
    expect(await answersByProxy()).toEqual([{ sent: false }, { sent: false }, { sent: false }])
  })

  it('a native EventSource survives a kill of the server; at a 502 it would stop permanently', async () => {
    await startNginx()
    const proxied = { ...server, url: proxyUrl }
    const write = (n: number) =>
      checkedCall(proxied, 'POST /v1/collections/seen/records', { body: { data: { n } } })
    await write(0)
    const { body } = await checkedCall(proxied, 'POST /v1/stream/tickets')
    const stream = `${proxyUrl}/v1/agents/seen/stream?ticket=${body.ticket}`
    const reader = start(process.execPath, [
      '--no-warnings',
      '--experimental-eventsource',
      '-e',
      readerOf(stream),
    ])
    let output = ''
    reader.stdout?.on('data', (bytes: Buffer) => (output += bytes.toString()))
    const untilPrinted = (text: string) => eventually(() => Promise.resolve(output.includes(text)))
    await untilPrinted('open')
    await write(1)
    await untilPrinted('n=1')
    await server.halt('SIGKILL')
    await untilPrinted('error 0')
    const unavailable = await fetch(stream)
    expect([unavailable.status, unavailable.headers.get('content-type'), await unavailable.text()]).toEqual([
      200,
      'text/event-stream',
      'retry: 2000\n\n',
    ])
    expect((await fetch(`${proxyUrl}/v1/agents`)).status).toBe(502)
    // The EventSource has opened the empty stream, and waits to reconnect.
    await eventually(() => Promise.resolve((output.match(/open/g) ?? []).length > 1))
    server = await startServer({ env, dataDir: server.dataDir })
    await write(2)
    await untilPrinted('n=2')
    expect(output).not.toContain('error 2')
    expect(output.match(/n=\d/g)).toEqual(['n=1', 'n=2'])
  })
})

/**
 * A program that prints the events of an EventSource: `error 0` if it reconnects, `error 2` if it has
 * stopped.
 */
function readerOf(stream: string): string {
  // The EventSource of Node does not keep the process alive while it waits to reconnect.
  return `setInterval(() => {}, 1_000)
    const source = new EventSource(${JSON.stringify(stream)})
    source.onopen = () => console.log('open')
    source.onerror = () => console.log('error ' + source.readyState)
    source.addEventListener('record', ({ data }) => console.log('n=' + JSON.parse(data).payload.n))`
}

describe.skipIf(leftOut(isMissing('haproxy')))('behind HAProxy', () => {
  const oneLine = () => /`(option httpchk GET \/readyz HTTP\/1\.1[^`]+)`/.exec(section)?.[1] ?? ''

  async function startHaproxy(backend: string): Promise<void> {
    const file = join(folder, 'haproxy.cfg')
    const defaults = 'mode http\n  timeout connect 2s\n  timeout client 1m\n  timeout server 1m'
    const front = `bind ${new URL(proxyUrl).host}\n  default_backend strandfast`
    writeFileSync(file, `defaults\n  ${defaults}\n\nfrontend front\n  ${front}\n\n${backend}\n`)
    start('haproxy', ['-db', '-f', file])
    await eventually(async () => (await fetch(proxyUrl).catch(() => undefined)) !== undefined)
  }

  it.each([
    ['as shown', (block: string) => block],
    ['in one line', (block: string) => block.replace(/ {2}option httpchk\n.*\n/, `  ${oneLine()}\n`)],
  ])('a health check with HTTP/1.1 succeeds: %s', async (_name, change) => {
    const block = change(blockOf('haproxy'))
    expect(block).toContain('HTTP/1.1')
    await startHaproxy(block.replace(/ check$/m, ' check inter 100ms rise 1 fall 1'))
    await untilReady()
    expect((await checkedCall({ ...server, url: proxyUrl }, 'GET /v1/agents')).status).toBe(200)
  })

  it('a client gets no magic link in an answer', async () => {
    await restartWithSignIn()
    await startHaproxy(blockOf('haproxy').replace(/ check$/m, ' check inter 100ms rise 1 fall 1'))
    await untilReady()
    expect(await answersByProxy()).toEqual([{ sent: false }, { sent: false }, { sent: false }])
  })

  it('a health check with HTTP/1.0 fails', async () => {
    const block = blockOf('haproxy').replace(/ {2}option httpchk\n.*\n/, '  option httpchk GET /readyz\n')
    await startHaproxy(block.replace(/ check$/m, ' check inter 100ms rise 1 fall 1'))
    await eventually(async () => (await fetch(`${proxyUrl}/readyz`)).status === 503)
  })
})
