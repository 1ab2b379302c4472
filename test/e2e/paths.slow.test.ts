import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { logIn, register } from '../support/auth/accounts.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { filesRun, type RepeatedCall } from '../support/server/files-run.js'
import { startServer, type TestServer } from '../support/server/server.js'

/*
 * docs/ARCHITECTURE.md lists the files that refuse, wait, decide or pass a request on. Here each request runs
 * under coverage: a listed file must run, and a file that runs must be listed or be a helper.
 */

/** Folders and files of helpers: codecs, tables, pure rules, clocks and figures. */
const helpers = [
  'src/auth/',
  'src/base/',
  'src/protocol/',
  'src/store-files/',
  'src/strand/',
  'src/wire/',
  'workers/store/hash-index/',
  'workers/store/tables/',
  // The parts of a listed file.
  'src/dispatch/links/while-full',
  'src/dispatch/pools/pool-thread',
  'src/dispatch/pools/watchdog',
  'src/dispatch/threads/shard-port',
  'src/front/http/answer-head',
  'src/front/http/auth/api-key-sync',
  'src/front/http/body-buffers',
  'src/front/http/streams/cursor',
  'src/front/http/streams/events',
  'src/front/limits/client-address',
  'src/front/metrics/request-counts',
  'src/front/routes/answers',
  'src/front/routes/auth/answers',
  'src/otlp/tasks',
  'src/server/requests',
  'src/server/server',
  'workers/auth/users',
  'workers/shard/command-table',
  'workers/shard/commit-times',
  'workers/shard/sizes',
  'workers/shard/state',
  'workers/shard/stream-event',
  'workers/store/environment',
  'workers/store/log/direct-writes',
  'workers/store/log/memtable',
  'workers/store/log/position',
  'workers/store/log/row-change',
  'workers/store/log/segment',
  'workers/store/scrubber',
  'workers/store/set-aside',
  'workers/store/table-spec',
  'workers/store/write-set',
]

const page = readFileSync('docs/ARCHITECTURE.md', 'utf8')

/** The files that a part of the page names. */
function filesIn(text: string): string[] {
  return [...text.matchAll(/`((?:[a-z-]+\/)+[a-z-]+)`/g)].flatMap(([, name = '']) =>
    [`src/${name}`, name].filter((path) => existsSync(`${path}.ts`)),
  )
}

/** The part of the page that begins with a name and ends with its decisions, and the number that it states. */
function pathOf(name: string): { files: string[]; stated: number | undefined } {
  const [text = ''] = page.slice(page.indexOf(`**${name}**`)).split(/\sSee\s\[/)
  const stated = /passes (\d+)/.exec(text)?.[1]
  return { files: filesIn(text), stated: stated === undefined ? undefined : Number(stated) }
}

const [, changes = ''] = page.split('Every change of data passes **26 files**:')
const shared = filesIn(changes.slice(0, changes.indexOf('**A write**')))

async function write(server: TestServer, agent: string, n: number): Promise<string> {
  const { status, body } = await checkedCall(server, `POST /v1/agents/${agent}/records`, {
    body: { data: { n } },
  })
  expect(status).toBe(201)
  return body.record_id
}

const writes: RepeatedCall = {
  times: 50,
  start: startServer,
  async prepare(server) {
    await newAgent(server, 'a')
    return async (round) => void (await write(server, 'a', round))
  },
}

const logins: RepeatedCall = {
  times: 20,
  start: startAuthServer,
  async prepare(server) {
    const account = await register(server, 'ada@example.org')
    return async () => void (await logIn(server, account))
  },
}

const events: RepeatedCall = {
  times: 50,
  start: startServer,
  async prepare(server) {
    await newAgent(server, 'a')
    const headers = { authorization: `Bearer ${server.rootKey}` }
    const { body } = await fetch(`${server.url}/v1/stream`, { headers })
    const parts = body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const until = async (part: string) => {
      while (!text.includes(part)) text += (await parts?.read())?.value ?? ''
    }
    await until('caught_up')
    return async (round) => until(await write(server, 'a', round))
  },
}

const erasures: RepeatedCall = {
  times: 20,
  start: startServer,
  async prepare(server) {
    await newAgent(server, 'a', 'protected')
    const { key } = await scopedKey(server, ['proposals:decide'])
    const hashes: string[] = []
    for (let n = 0; n <= erasures.times; n++) hashes.push(await write(server, 'a', n))
    return async (round) => {
      const proposed = await checkedCall(server, `POST /v1/agents/a/records/${hashes[round]}/erase`)
      expect(proposed.status).toBe(202)
      const approval = `POST /v1/proposals/${proposed.body.proposal_id}/approve`
      expect((await checkedCall(server, approval, { key })).status).toBe(200)
    }
  },
}

const batches: RepeatedCall = {
  times: 20,
  start: startServer,
  async prepare(server) {
    const log = { timeUnixNano: '1700000000000000000', body: { stringValue: 'started' } }
    const body = { resourceLogs: [{ scopeLogs: [{ logRecords: [log] }] }] }
    return async () => expect((await checkedCall(server, 'POST /v1/logs', { body })).body).toEqual({})
  },
}

describe('the path of', { timeout: 180_000 }, () => {
  it.each([
    ['A write', writes],
    ['A login', logins],
    ['An erase by proposal', erasures],
    ['An OTLP batch', batches],
  ] as const)('%s in docs/ARCHITECTURE.md has the files that run', async (name, request) => {
    const { files, stated } = pathOf(name)
    const listed = [...shared, ...files]
    const run = await filesRun(request)
    expect(listed.filter((file) => !run.has(file))).toEqual([])
    expect(notListed(run, listed)).toEqual([])
    expect(stated ?? listed.length).toBe(listed.length)
  })

  it('an event in docs/ARCHITECTURE.md has the files that run after its write', async () => {
    const { files, stated } = pathOf('An event of a stream')
    const run = await filesRun(events)
    expect(files.filter((file) => !run.has(file))).toEqual([])
    expect(notListed(run, [...shared, ...pathOf('A write').files, ...files])).toEqual([])
    expect(files).toHaveLength(stated ?? 0)
  })

  it('a takeover in docs/ARCHITECTURE.md, and what changes of data share, have as many files as stated', () => {
    expect(shared).toHaveLength(26)
    const { files, stated } = pathOf('A takeover')
    expect(files).toHaveLength(stated ?? 0)
  })
})

function notListed(run: ReadonlySet<string>, listed: readonly string[]): string[] {
  return [...run].filter(
    (file) => !listed.includes(file) && !helpers.some((helper) => file.startsWith(helper)),
  )
}
