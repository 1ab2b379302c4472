import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { register } from '../support/auth/accounts.js'
import { newOrganism } from '../support/auth/organisms.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type Ran, run } from '../support/server/command.js'
import { startServer, type TestServer } from '../support/server/server.js'

const program = join(import.meta.dirname, '../../dist/program/strandfast.js')
const hex = /^[0-9a-f]{64}$/

let server: TestServer
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'server-commands-'))
  server = await startAuthServer()
})
afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const env = () => ({ SERVICE_ROOT_API_KEY: server.rootKey, SERVICE_DATA_DIR: server.dataDir })
const strandfast = (...args: string[]): Promise<Ran> => run(args, env())

/** Runs a command that must succeed without a warning. @returns its standard output */
async function output(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await strandfast(...args)
  expect([status, stderr], args.join(' ')).toEqual([0, ''])
  return stdout
}

async function rows(...args: string[]): Promise<Record<string, unknown>[]> {
  const lines = (await output(...args)).trimEnd().split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line))
}

/** Writes a record. @returns its hash */
async function written(agent: string, data: object): Promise<string> {
  const { body } = await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data } })
  return body.record_id
}

async function isErased(agent: string, hash: string): Promise<boolean> {
  const { body } = await checkedCall(server, `GET /v1/agents/${agent}/records/${hash}`)
  return body.erased
}

/** Starts a command in a terminal of 60 columns. */
function inTerminal(...args: string[]): ChildProcess {
  const quoted = [process.execPath, program, ...args].map((one) => `'${one}'`).join(' ')
  return spawn('script', ['-qec', `stty cols 60 && ${quoted}`, '/dev/null'], {
    env: { PATH: process.env['PATH'], ...env() },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
}

/** The lines that a terminal shows until the command ends; `answer` is typed after the question. */
async function shown(child: ChildProcess, answer = ''): Promise<{ code: unknown; text: string }> {
  let text = ''
  child.stdout?.on('data', (bytes: Buffer) => {
    text += bytes.toString()
    if (answer !== '' && text.includes('Type yes to confirm: ')) {
      child.stdin?.write(answer)
      answer = ''
    }
  })
  const [code]: unknown[] = await once(child, 'close')
  return { code, text: stripVTControlCharacters(text).replaceAll('\r', '') }
}

const withTerminal = it.runIf(existsSync('/usr/bin/script'))

describe('strandfast agents and status', () => {
  beforeAll(async () => {
    await newAgent(server, 'tower-north', 'protected')
    await newAgent(server, 'tower-south', 'free')
    await written('tower-south', { n: 1 })
  })

  it('list agents as lines of JSON in a pipe, and as a table with --format text', async () => {
    const listed = await rows('agents', '--prefix', 'tower-')
    expect(listed).toEqual([
      expect.objectContaining({ agent_id: 'tower-north', zone: 'protected', record_count: 0 }),
      expect.objectContaining({ agent_id: 'tower-south', zone: 'free', record_count: 1 }),
    ])
    const [head = '', north = '', south = ''] = (
      await output('agents', '--prefix', 'tower-', '--format', 'text')
    ).split('\n')
    expect(head.split(/ {2,}/)).toEqual([
      'NAME',
      'ZONE',
      'RECORDS',
      'BYTES',
      'LAST RECORD',
      'CREATED',
      'PUBLIC KEY',
    ])
    expect(north).toMatch(/^tower-north {2}protected {2}0 {8}\d+ +\d{4}-\d\d-\d\dT[\d:.]+Z {2}\d{4}-/)
    expect(south.indexOf('free')).toBe(head.indexOf('ZONE'))
    const none = await strandfast('agents', '--prefix', 'nowhere-', '--format', 'text')
    expect(none).toEqual({ status: 0, stdout: '', stderr: 'No agents\n' })
  })

  it('show one agent, or one of its members alone', async () => {
    const [status = {}] = await rows('status', 'tower-south')
    expect(await output('status', 'tower-south', '--field', 'public_key')).toBe(`${status['public_key']}\n`)
    expect(status['public_key']).toMatch(hex)
    const text = await output('status', 'tower-south', '--format', 'text')
    expect(text).toMatch(/^name {9}tower-south\nzone {9}free\nrecords {6}1 and the genesis record\n/)
    const unknown = await strandfast('status', 'tower-south', '--field', 'colour')
    expect([unknown.status, unknown.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^The status could not be read: Unknown field colour, expected one of agent_id, /,
      ),
    ])
  })
})

describe('strandfast keys', () => {
  it('creates a key, lists it without its secret, and deletes it', async () => {
    const created = ['keys', 'create', 'Gateway', '--scope', 'records:read', '--scope', 'records:write']
    const [made = {}] = await rows(...created, '--agent', 'tower-*', '--expires-in', '2h')
    const { key_id: id, key: secret } = made
    expect(made).toMatchObject({ name: 'Gateway', scopes: ['records:read', 'records:write'] })
    const [first = {}] = await rows('keys', 'list')
    expect(first).toMatchObject({ key_id: id, agents: ['tower-*'], expires_at_ms: made['expires_at_ms'] })
    const lifetimeMs = Number(first['expires_at_ms']) - Number(first['created_at_ms'])
    expect(Math.round(lifetimeMs / 3_600_000)).toBe(2)
    const table = await output('keys', 'list', '--format', 'text')
    expect(table).toContain(`${String(id)}  Gateway  records:read, records:write  tower-*`)
    expect(table).not.toContain(String(secret))
    const asKey = (...args: string[]) => strandfast(...args, '--api-key', String(secret))
    expect((await asKey('status', 'tower-north')).status).toBe(0)
    const refused = await asKey('keys', 'list')
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^The keys could not be listed: .*\(403 forbidden\): give a key with more scopes/,
      ),
    ])
    expect(await output('keys', 'delete', String(id), '--format', 'text')).toBe(`Deleted ${String(id)}\n`)
    expect((await asKey('status', 'tower-north')).stderr).toContain('401')
    const none = await strandfast('keys', 'list', '--format', 'text')
    expect(none.stderr).toBe('No API keys besides the root key\n')
  })

  it('prints a new key for people, or alone with --field', async () => {
    const created = ['keys', 'create', 'Reader', '--scope', 'records:read']
    expect(await output(...created, '--format', 'text')).toMatch(
      /^Created key_\w+ \(Reader\): records:read for all agents, expires never\nAPI key, shown this once: sf_key_\S+\n$/,
    )
    expect(await output(...created, '--field', 'key')).toMatch(/^sf_key_\S+\n$/)
  })

  it('refuses wrong arguments before it calls the server', async () => {
    for (const [args, reason] of [
      [['keys'], 'Expected one of list, create, delete, rotate: see'],
      [['keys', 'constructor'], 'Expected one of list, create, delete, rotate, not constructor'],
      [['keys', 'create', 'x'], 'Expected --scope to be one of records:read'],
      [['keys', 'create', 'x', '--scope', 'everything'], 'Expected --scope to be one of records:read'],
      [['keys', 'create', '--scope', 'ingest'], 'Expected create NAME'],
      [['keys', 'create', 'x', '--scope', 'ingest', '--expires-in', '1y'], 'Expected --expires-in'],
      [['keys', 'list', '--prefix', 'x'], "Unknown option '--prefix'"],
      [['keys', 'list', '--format', 'xml'], 'Expected --format to be text or json'],
      [['proposals', 'list', '--state', 'open'], 'Expected --state'],
      [['users', 'ada'], 'Expected no operand'],
    ] as const) {
      const { status, stderr } = await strandfast(...args)
      expect([status, stderr]).toEqual([78, expect.stringContaining(reason)])
    }
  })
})

describe('strandfast policies', () => {
  it('replaces policies with a document as get prints it, and reports warnings', async () => {
    await newAgent(server, 'notes', 'free')
    const file = join(folder, 'policies.json')
    const policies = [{ actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.email' }] }]
    writeFileSync(file, JSON.stringify({ policies }))
    const replaced = await strandfast('policies', 'set', 'notes', file, '--format', 'text')
    expect([replaced.status, replaced.stdout]).toEqual([0, 'Replaced the policies of notes: 1\n'])
    expect(replaced.stderr).toMatch(/^warning: .*\$jwt\.email/)
    const printed = await output('policies', 'get', 'notes')
    expect(printed).toBe(`${JSON.stringify({ policies })}\n`)
    const shown = await output('policies', 'get', 'notes', '--format', 'text')
    expect(shown).toBe(`${JSON.stringify({ policies }, null, 2)}\n`)
    writeFileSync(file, printed)
    expect((await strandfast('policies', 'set', 'notes', file)).status).toBe(0)
  })

  it('proposes them in a governed agent', async () => {
    await newAgent(server, 'ledger', 'governed')
    const file = join(folder, 'none.json')
    writeFileSync(file, '{"policies":[]}')
    expect(await output('policies', 'set', 'ledger', file, '--format', 'text')).toMatch(
      /^Proposed p_\d+_ledger: it is applied at \d{4}-\S+Z unless it is rejected\n$/,
    )
    expect(await rows('proposals', 'list', 'ledger')).toMatchObject([{ change: { policies: [] } }])
  })

  it('exits 66 without a file, and 1 for a document that is not one', async () => {
    expect((await strandfast('policies', 'set', 'notes', join(folder, 'nowhere.json'))).status).toBe(66)
    const file = join(folder, 'wrong.json')
    for (const text of ['[]', '{"policies":[{"actions":["fly"],"conditions":[]}]}', '{"policies":[}']) {
      writeFileSync(file, text)
      const { status, stderr } = await strandfast('policies', 'set', 'notes', file)
      expect([status, stderr]).toEqual([1, expect.stringContaining(`not replaced: ${file}: `)])
    }
  })
})

describe('strandfast users', () => {
  it('lists the users of the root namespace and of an organism', async () => {
    await register(server, 'ada@example.com')
    await register(server, 'bob@example.com')
    expect(await output('users', '--prefix', 'ada', '--field', 'email')).toBe('ada@example.com\n')
    const table = await output('users', '--format', 'text')
    expect(table).toMatch(/^EMAIL {12}ID .*\nada@example\.com {2}usr_\S+ +no +0 /)
    expect(table.trimEnd().split('\n')).toHaveLength(3)
    await newOrganism(server, 'acme')
    const none = await strandfast('users', '--organism', 'acme', '--format', 'text')
    expect(none).toEqual({ status: 0, stdout: '', stderr: 'No users\n' })
  })
})

describe('strandfast erase and proposals', () => {
  it('erase a record, and refuse without --yes where no terminal can ask', async () => {
    const hash = await written('tower-south', { secret: 1 })
    const refused = await strandfast('erase', 'tower-south', hash)
    expect([refused.status, refused.stderr]).toEqual([78, expect.stringContaining('Expected --yes')])
    expect(await isErased('tower-south', hash)).toBe(false)
    const erased = await output('erase', 'tower-south', hash, '--yes', '--format', 'text')
    expect(erased).toBe(`Erased ${hash} of tower-south\n`)
    expect(await isErased('tower-south', hash)).toBe(true)
  })

  it('propose an erasure in a protected agent, which another key approves', async () => {
    const scope = ['--scope', 'proposals:decide', '--scope', 'records:erase', '--scope', 'records:read']
    const key = (await output('keys', 'create', 'Approver', ...scope, '--field', 'key')).trim()
    const hash = await written('tower-north', { secret: 2 })
    const proposed = await output('erase', 'tower-north', hash, '--yes', '--format', 'text')
    const [, id = ''] = /^Proposed (\S+): it is applied when another key approves it/.exec(proposed) ?? []
    const open = await output('proposals', 'list', 'tower-north', '--format', 'text')
    expect(open).toMatch(
      new RegExp(
        `\n${id}  proposed  erase   root +\\S+Z  when approved  -      protected  record 1 ${hash}\n`,
      ),
    )
    const own = await strandfast('proposals', 'approve', id)
    expect([own.status, own.stderr]).toEqual([1, expect.stringContaining('The proposal was not decided: ')])
    expect(await output('proposals', 'approve', id, '--format', 'text', '--api-key', key)).toBe(
      `${id} is applied\n`,
    )
    expect(await isErased('tower-north', hash)).toBe(true)
    expect(await rows('proposals', 'list', 'tower-north')).toEqual([])
    expect(await rows('proposals', 'list', 'tower-north', '--state', 'applied')).toMatchObject([
      { proposal_id: id },
    ])
  })

  it('reject and cancel proposals', async () => {
    for (const [word, state] of [
      ['reject', 'rejected'],
      ['cancel', 'cancelled'],
    ] as const) {
      const hash = await written('tower-north', { secret: word })
      const [{ proposal_id: id } = {}] = await rows('erase', 'tower-north', hash, '--yes')
      expect(await rows('proposals', word, String(id))).toMatchObject([{ state }])
      expect(await isErased('tower-north', hash)).toBe(false)
    }
  })

  withTerminal('show the record on a terminal, and erase it only after yes', async () => {
    const hash = await written('tower-south', { secret: 'x\u001b[2J' })
    const refused = await shown(inTerminal('erase', 'tower-south', hash), 'no\n')
    expect(refused.code).toBe(1)
    expect(refused.text).toContain('{"secret":"x\\u001b[2J"}\nPermanently erase its body?')
    expect(refused.text).toContain('Nothing was erased: Not confirmed')
    const ended = await shown(inTerminal('erase', 'tower-south', hash), '\u0004')
    expect(ended.code).toBe(1)
    expect(await isErased('tower-south', hash)).toBe(false)
    const erased = await shown(inTerminal('erase', 'tower-south', hash), 'yes\n')
    expect([erased.code, erased.text]).toEqual([0, expect.stringContaining(`\nErased ${hash}`)])
    expect(await isErased('tower-south', hash)).toBe(true)
  })
})

describe('strandfast query', () => {
  beforeAll(async () => {
    await newAgent(server, 'letters', 'free')
    await written('letters', { text: 'short' })
    await written('letters', { text: 'long'.repeat(100) })
  })

  withTerminal('prints a table on a terminal, cut at its width', async () => {
    const { code, text } = await shown(inTerminal('query', 'letters'))
    const [head, long = '', short, note] = text.split('\n')
    expect(code).toBe(0)
    expect(head).toBe('SEQ  TIME                      TYPE    BODY')
    expect(long).toMatch(/^2 {4}\d{4}-\S+Z {2}record {2}\{"text":"lon+g.*…$/)
    expect(long).toHaveLength(60)
    expect(short).toMatch(/^1 {4}\d{4}-\S+Z {2}record {2}\{"text":"short"\}$/)
    expect(note).toContain('--format json prints everything')
  })

  it('prints lines of JSON with readable times in a pipe, and whole lines with --format text', async () => {
    const [record = {}] = await rows('query', 'letters', '--oldest', '--limit', '1')
    expect(record).toMatchObject({ seq: 1, payload: { text: 'short' } })
    expect(record['timestamp']).toBe(new Date(Number(record['timestamp_ms'])).toISOString())
    expect(record).not.toHaveProperty('data')
    expect(await output('query', 'letters', '--format', 'text')).toContain('long'.repeat(100))
    const none = await strandfast('query', 'letters', '--type', 'nothing', '--format', 'text')
    expect(none).toEqual({ status: 0, stdout: '', stderr: 'No records match\n' })
  })
})

describe('strandfast tail', () => {
  it('prints a row for each record with --format text', async () => {
    await newAgent(server, 'followed')
    const args = [program, 'tail', 'followed', '--since', '0', '--format', 'text']
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env['PATH'], ...env() },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    await written('followed', { text: '\u202e' })
    expect((await lines.next()).value).toMatch(/^AGENT {5}SEQ {2}TIME {22}TYPE {4}BODY$/)
    expect((await lines.next()).value).toMatch(/^followed {2}1 {4}\S+Z {2}record {2}\{"text":"\\u202e"\}$/)
    child.kill('SIGINT')
    expect(await once(child, 'close')).toEqual([0, null])
  })
})

describe('the former name of --api-key', () => {
  it('is accepted with a warning, but not beside the new one', async () => {
    const { status, stderr } = await strandfast('status', 'letters', '--key', server.rootKey)
    expect([status, stderr]).toEqual([0, 'warning: --key is now --api-key\n'])
    const both = await strandfast('status', 'letters', '--key', 'a', '--api-key', 'b')
    expect([both.status, both.stderr]).toEqual([78, expect.stringContaining('without --key')])
  })
})

describe('a command that the rate limit delays', () => {
  it('warns once and completes', async () => {
    const limits = { SERVICE_RATE_LIMIT_RPS: '1', SERVICE_RATE_LIMIT_BURST: '1' }
    const limited = await startServer({ env: { ...limits, SERVICE_SHARDS: '1' } })
    try {
      const input = join(folder, 'many.ndjson')
      writeFileSync(input, '{"n":1}\n'.repeat(3_000))
      const command = `'${process.execPath}' '${program}' write many < '${input}'`
      const child = spawn('sh', ['-c', command], {
        env: {
          PATH: process.env['PATH'],
          SERVICE_ROOT_API_KEY: limited.rootKey,
          SERVICE_DATA_DIR: limited.dataDir,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let [out, err] = ['', '']
      child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
      child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()))
      expect(await once(child, 'close')).toEqual([0, null])
      expect(out).toMatch(/^Wrote 3000 records to many /)
      expect(err).toMatch(
        /^warning: Delaying requests, because the server accepts 1 request per second from .*\n$/,
      )
    } finally {
      await limited.stop()
    }
  })
})
