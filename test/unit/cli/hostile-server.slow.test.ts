import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { printable, printableLines } from '../../../src/cli/printable.js'
import { startCommand, type EndedCommand } from '../../support/server/backup.js'

/** Clears the screen, sets the title, and hides what follows. */
const evil = '\u001b[2J\u001b]0;owned\u0007\u009b8m\u202e\r'
const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/

const manifest = '{"format":"strand-export/v1","agent":"a","from_seq":0,"to_seq":1000000}\n'
const whole =
  '{"format":"strand-export/v1","from_seq":0,"to_seq":0}\n{"h":"a"}\n{"chain_head":"c","records":1}\n'

let folder: string
let server: Server
let sent: number

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hostile-'))
  sent = 0
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})

async function listen(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

/** Sends `first`, then `part` without end. */
async function endless(response: ServerResponse, part: string, first = ''): Promise<void> {
  response.setMaxListeners(0)
  response.write(first)
  while (!response.destroyed) {
    sent += part.length
    if (!response.write(part)) await Promise.race([once(response, 'drain'), once(response, 'close')])
    else await turn()
  }
}

function run(...args: string[]): Promise<EndedCommand> {
  return startCommand(args, { SERVICE_DATA_DIR: join(folder, 'data') }).ended
}

/** The commands that read responses of a server. */
function commandsCalling(url: string): string[][] {
  const file = join(folder, 'import.ndjson')
  const exported = {
    format: 'strand-export/v1',
    agent: 'a',
    strand: '0'.repeat(64),
    public_key: '0'.repeat(64),
    from_seq: 0,
    to_seq: 0,
    record_count: 0,
  }
  writeFileSync(file, `${JSON.stringify(exported)}\n`)
  const to = ['--url', url, '--api-key', 'k']
  return [
    ['witness', '--state', join(folder, 'state'), ...to],
    ['export', '--out', join(folder, 'out'), ...to],
    ['import', file, ...to],
    ['keys', 'rotate', ...to],
  ]
}

/** The commands that call the server through the client. */
function clientCommands(url: string): string[][] {
  return [
    ['query', 'a'],
    ['agents'],
    ['status', 'a'],
    ['keys', 'list'],
    ['keys', 'create', 'a', '--scope', 'ingest'],
    ['keys', 'delete', 'a'],
    ['proposals', 'list'],
    ['proposals', 'approve', 'a'],
    ['policies', 'get', 'a'],
    ['users'],
    ['erase', 'a', 'b', '--yes'],
  ].map((args) => [...args, '--url', url, '--api-key', 'k'])
}

/** Members of all answers, with texts that a terminal would obey. */
const times = {
  timestamp_ms: 0,
  created_at_ms: 0,
  expires_at_ms: 0,
  last_used_at_ms: null,
  last_login_at_ms: null,
}
const texts = {
  agent_id: evil,
  name: evil,
  key: evil,
  key_id: evil,
  proposal_id: evil,
  record_id: evil,
  email: evil,
}
const hostileRow = {
  ...times,
  ...texts,
  zone: evil,
  state: evil,
  action: evil,
  proposer: evil,
  made_by: evil,
  target: evil,
  type: evil,
  user_id: evil,
  scopes: [evil],
  agents: [evil],
  payload: { [evil]: evil },
  change: null,
  effective_at_ms: null,
}
const hostileAnswer = {
  ...hostileRow,
  statuses: [hostileRow],
  api_keys: [hostileRow],
  proposals: [hostileRow],
  users: [hostileRow],
  records: [hostileRow],
  policies: [{ actions: [evil] }],
  warnings: [evil],
  next_cursor: null,
}

/** A witness returns another exit code if the log could not be checked. */
const failedCode = ([command]: readonly string[]) => (command === 'witness' ? 75 : 1)

describe('a command that calls a hostile server', () => {
  it.each([
    ['in an error', 500],
    ['in a response', 200],
  ])('prints no control characters %s', async (_where, status) => {
    const url = await listen((request, response) => {
      request.resume()
      response.statusCode = status
      response.end(JSON.stringify({ code: evil, detail: evil, agent_id: evil, chain_head: evil }) + evil)
    })
    for (const args of commandsCalling(url)) {
      const { stdout, stderr, code } = await run(...args)
      expect(stdout + stderr, args.join(' ')).not.toMatch(controls)
      if (status === 500)
        expect([code, stderr]).toEqual([failedCode(args), expect.stringContaining('\\u001b[2J')])
    }
  })

  it.each(['text', 'json'])('prints no control characters of valid answers as %s', async (format) => {
    const url = await listen((request, response) => {
      request.resume()
      response.end(JSON.stringify(hostileAnswer))
    })
    for (const args of clientCommands(url)) {
      const { stdout, stderr, code } = await run(...args, '--format', format)
      expect([args[0], code, stderr]).toEqual([args[0], 0, expect.not.stringMatching(controls)])
      expect(stdout, args.join(' ')).not.toMatch(controls)
      expect(stdout, args.join(' ')).toContain('\\u001b[2J')
    }
  })

  it('prints no control characters of a refusal that the client reads', async () => {
    const url = await listen((request, response) => {
      request.resume()
      response.statusCode = 403
      response.end(JSON.stringify({ code: evil, detail: evil }))
    })
    for (const args of clientCommands(url)) {
      const { stdout, stderr, code } = await run(...args)
      expect([args[0], code, stdout]).toEqual([args[0], 1, ''])
      expect(stderr).not.toMatch(controls)
      expect(stderr).toContain('\\u001b[2J')
    }
  })

  it('prints no control characters of a file', async () => {
    await listen(() => undefined)
    const file = join(folder, 'evil.ndjson')
    const strand = {
      strand: '0'.repeat(64),
      public_key: '0'.repeat(64),
      from_seq: 0,
      to_seq: 0,
      record_count: 0,
    }
    writeFileSync(file, `${JSON.stringify({ format: 'strand-export/v1', agent: 'a', ...strand })}\n${evil}\n`)
    const verified = await run('verify', file, '--public-key', '0'.repeat(64))
    expect([verified.code, verified.stdout + verified.stderr]).toEqual([
      1,
      expect.not.stringMatching(controls),
    ])
    writeFileSync(join(folder, 'manifest.json'), `{"files":"${evil}"}`)
    const restored = await run('restore', folder)
    expect([restored.code, restored.stderr]).toEqual([1, expect.not.stringMatching(controls)])
  })
})

describe('a command whose server sends too much', { timeout: 120_000 }, () => {
  const megabyte = 'x'.repeat(1_048_576)

  it.each([
    ['a response', 200],
    ['an error', 500],
  ])('stops reading an endless body of %s', async (_what, status) => {
    const url = await listen((request, response) => {
      request.resume()
      response.statusCode = status
      void endless(response, megabyte)
    })
    for (const args of [...commandsCalling(url), ...clientCommands(url)]) {
      sent = 0
      const { code } = await run(...args)
      expect([args[0], code]).toEqual([args[0], status === 500 ? failedCode(args) : 1])
      // The count includes the bytes in the buffers of both ends.
      expect(sent / megabyte.length).toBeLessThan(32)
    }
    expect(readdirSync(folder)).toEqual(['import.ndjson'])
  })

  it.each([
    ['a line that is longer than the limit of exports', manifest, megabyte],
    ['more lines than the manifest says', whole, '{"h":"a"}\n'.repeat(10_000)],
  ])('stops reading an export with %s', async (_what, first, part) => {
    const url = await listen((_request, response) => void endless(response, part, first))
    const { code, stderr } = await run('export', '--out', join(folder, 'out'), '--url', url, '--api-key', 'k')
    expect([code, stderr]).toEqual([1, expect.stringContaining('is not an export')])
    expect(sent / megabyte.length).toBeLessThan(64)
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('printable', () => {
  it('escapes each character that a terminal would obey', () => {
    expect(printable('a\u001b[0m\n\u0085\u2028\u202e\u200b\u2060\ufeff\ud800é€')).toBe(
      'a\\u001b[0m\\u000a\\u0085\\u2028\\u202e\\u200b\\u2060\\ufeff\\ud800é€',
    )
    expect(printableLines('a\n\tb\r')).toBe('a\n\\u0009b\\u000d')
  })
})
