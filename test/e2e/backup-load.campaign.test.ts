import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Checker, type Entry } from '../../scripts/crash-loop/check.mjs'
import { OperationSource, freeAgent } from '../../scripts/crash-loop/operations.mjs'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { rootKey } from '../../scripts/crash-loop/victim.mjs'
import { logIn, register, tryLogin, type Account } from '../support/auth/accounts.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { backUp, restore, startCommand } from '../support/server/backup.js'
import { eventually } from '../support/eventually.js'
import { addEdge, edgesOf, removeEdge } from '../support/shard/graph.js'
import { newOrganism, registerIn } from '../support/auth/organisms.js'
import { call, type TestServer } from '../support/server/server.js'

const WIDTH = 8

const env = { SERVICE_SHARDS: '3', SERVICE_ROOT_API_KEY: rootKey }

let directory: string
let server: TestServer
let restored: TestServer

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-backup-'))
  server = await startAuthServer({ dataDir: join(directory, 'data'), env })
})

afterAll(async () => {
  await server?.stop()
  await restored?.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** Load of every kind until `stop`, and the journal of its requests and answers. */
class Load {
  readonly journal: Entry[] = []
  readonly #source = new OperationSource(seededRandom(7), 'load')
  #stopped = false
  readonly #ended: Promise<unknown>

  constructor() {
    this.#ended = Promise.all([
      ...Array.from({ length: WIDTH }, () => this.#write()),
      this.#changeEdges(),
      this.#erase(),
    ])
  }

  /** Number of answers so far. */
  get answers(): number {
    return this.journal.filter(({ answer }) => answer !== undefined).length
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#ended
  }

  async #write(): Promise<void> {
    while (!this.#stopped) {
      const operation = this.#source.next()
      const entry: Entry = { operation }
      this.journal.push(entry)
      const { method, path, headers, body } = operation.request
      const raw = body === undefined ? {} : { raw: body }
      const { status, body: answer } = await call(server, `${method} ${path}`, { headers, ...raw })
      entry.answer = { status, body: answer }
      if (operation.kind === 'write' && operation.agents[0] === freeAgent) {
        this.#source.targets.push({ hash: answer.content_hash, seq: answer.seq, deleted: false })
      } else if (operation.target !== undefined) {
        this.#source.targets.push({ ...operation.target, deleted: !operation.target.deleted })
      }
    }
  }

  async #changeEdges(): Promise<void> {
    for (let weight = 1; !this.#stopped; weight++) {
      await addEdge(server, ['left', 'right', 'likes', weight])
      if (weight % 5 === 0) await removeEdge(server, ['left', 'right'])
    }
  }

  async #erase(): Promise<void> {
    while (!this.#stopped) {
      const { body } = await checkedCall(server, 'POST /v1/agents/left/records', {
        body: { data: { secret: 1 }, type: 'note' },
      })
      await checkedCall(server, `POST /v1/agents/left/records/${body.record_id}/erase`)
    }
  }
}

/**
 * The journal at the beginning of the backup: what was answered by then must be in the backup, the rest may
 * be. Records that were changed after that are left out.
 */
function journalAtStart(journal: readonly Entry[], answered: ReadonlySet<Entry>): Entry[] {
  const moved = new Set(
    journal.filter((entry) => !answered.has(entry)).map(({ operation }) => operation.target?.hash),
  )
  return journal
    .filter(({ operation }) => operation.target === undefined || !moved.has(operation.target.hash))
    .map((entry) => (answered.has(entry) ? entry : { operation: entry.operation }))
}

describe('a backup under load', { timeout: 180_000 }, () => {
  let load: Load
  let answered: Set<Entry>
  let ada: Account
  let eve: Account
  let key: string
  let erased: string

  beforeAll(async () => {
    await newAgent(server, freeAgent)
    await newAgent(server, 'left')
    await newAgent(server, 'right')
    await newOrganism(server, 'acme', { agents: ['desk'] })
    ada = await register(server, 'ada@example.com')
    eve = await registerIn(server, 'acme', 'eve@example.com')
    ;({ key } = await scopedKey(server, ['records:read']))
    const body = { data: { secret: 'erased-before-the-backup' }, type: 'note' }
    erased = (await checkedCall(server, 'POST /v1/agents/left/records', { body })).body.record_id
    await checkedCall(server, `POST /v1/agents/left/records/${erased}/erase`)
    load = new Load()
    await eventually(() => load.answers > 200)
  })

  it('succeeds, shows its progress and does not block the server', async () => {
    answered = new Set(load.journal.filter(({ answer }) => answer !== undefined))
    const before = load.answers
    const { code, stdout, stderr } = await backUp(server.dataDir, join(directory, 'copy'))
    expect([code, stderr.replaceAll(/^(copied|verified|took) .*\n/gm, '')]).toEqual([0, ''])
    expect(stdout).toMatch(/^Backed up \d+ records of \d+ agents to /)
    expect(load.answers).toBeGreaterThan(before)
    await load.stop()
    expect(load.journal.filter(({ answer }) => (answer?.status ?? 0) >= 300)).toEqual([])
    expect(server.stderr()).toBe('')
  })

  it('contains files that only their owner can read, and no erased body', () => {
    const copy = join(directory, 'copy')
    const files = readdirSync(copy, { recursive: true, encoding: 'utf8' }).sort()
    const shards = [0, 1, 2].flatMap((shard) => [`shard-${shard}`, `shard-${shard}/data.mdb`])
    const secrets = ['license-authority.seed', 'manifest.json', 'master.seed']
    expect(files).toEqual(['format.json', ...secrets, ...shards])
    for (const name of ['', 'manifest.json', ...secrets]) {
      expect(statSync(join(copy, name)).mode & 0o077).toBe(0)
    }
    for (const shard of [0, 1, 2]) {
      const bytes = readFileSync(join(copy, `shard-${shard}/data.mdb`))
      expect(bytes.includes('erased-before-the-backup')).toBe(false)
    }
  })

  it('restores a data directory with everything that was answered before the backup began', async () => {
    const dataDir = join(directory, 'restored')
    const { code, stdout, stderr } = await restore(join(directory, 'copy'), dataDir)
    expect([code, stderr.replaceAll(/^(copied|verified|took) .*\n/gm, '')]).toEqual([0, ''])
    expect(stdout).toMatch(/^Restored \d+ records of \d+ agents to /)
    await server.halt()
    restored = await startAuthServer({
      dataDir,
      env: { SERVICE_ROOT_API_KEY: rootKey, SERVICE_LOG_INTERVAL_SECS: '0' },
    })
    const journal = journalAtStart(load.journal, answered)
    const { faults, records } = await new Checker().check(restored.url, { journal, whole: true })
    expect(faults).toEqual([])
    expect(records).toBeGreaterThan(200)
  })

  it('lets users sign in again in each namespace, and keys have the same permissions', async () => {
    for (const account of [ada, eve]) {
      const base = account === ada ? '/v1/auth' : '/v1/organisms/acme/auth'
      expect((await checkedCall(restored, `GET ${base}/me`, { key: account.token })).status).toBe(401)
      const { email, password } = account
      const { body } = await checkedCall(restored, `POST ${base}/login`, {
        body: { email, password },
        key: null,
      })
      const me = await checkedCall(restored, `GET ${base}/me`, { key: body.token })
      expect([me.status, me.body.email]).toEqual([200, email])
      const again = { body: { refresh_token: body.refresh_token }, key: null }
      expect((await checkedCall(restored, `POST ${base}/refresh`, again)).status).toBe(200)
    }
    await logIn(restored, ada)
    expect((await tryLogin(restored, ada.email, 'a wrong password')).status).toBe(401)
    expect((await tryLogin(restored, eve.email, eve.password)).status).toBe(401)
    expect((await checkedCall(restored, 'GET /v1/agents/left/head', { key })).status).toBe(200)
    expect((await checkedCall(restored, 'GET /v1/organisms/acme')).body.agents).toContain('acme::desk')
  })

  it('lets every agent continue to write, with the same edges and erasures', async () => {
    for (const agent of ['left', 'acme::desk']) {
      const written = await checkedCall(restored, `POST /v1/agents/${agent}/records`, {
        body: { data: { n: 1 }, type: 'note' },
      })
      expect(written.status).toBe(201)
    }
    const { body } = await checkedCall(restored, `GET /v1/agents/left/records/${erased}`)
    expect(body).toMatchObject({ erased: true, payload: null })
    const outbound = await edgesOf(restored, 'left', { direction: 'out' })
    expect(await edgesOf(restored, 'right', { direction: 'in' })).toEqual(outbound)
  })

  it('reserves the key of every agent, so that no other agent can take it', async () => {
    const own = load.journal.filter((entry) => answered.has(entry) && entry.operation.kind === 'agent')
    const seeds = own.flatMap(({ operation }) => {
      const { seed_hex: seed } = JSON.parse(operation.request.body ?? '{}')
      return seed === undefined ? [] : [seed as string]
    })
    expect(seeds.length).toBeGreaterThan(0)
    for (const [index, seed] of seeds.slice(0, 10).entries()) {
      const body = { name: `thief-${index}`, zone: 'free', seed_hex: seed }
      expect((await checkedCall(restored, 'POST /v1/agents', { body })).body.code).toBe('key_in_use')
    }
  })

  it('can be made of the restored directory, with the same heads root if nothing was written', async () => {
    const roots = [1, 2].map(async (number) => {
      // The second backup may be requested while the first one is being copied.
      const target = join(directory, `again-${number}`)
      const ended = await backUp(restored.dataDir, target)
      return { ...ended, root: /heads root +([0-9a-f]{64})/.exec(ended.stdout)?.[1] }
    })
    const [one, other] = await Promise.all(roots)
    const busy = [one, other].filter((ended) => ended?.code !== 0)
    for (const ended of busy) expect(ended?.stderr).toContain('Another backup is being made')
    expect(busy.length).toBeLessThan(2)
    const { stdout } = await backUp(restored.dataDir, join(directory, 'again-3'))
    expect(stdout).toContain(one?.root ?? other?.root ?? 'none')
  })

  it('leaves nothing when it is interrupted', async () => {
    const target = join(directory, 'interrupted')
    const { process: child, ended } = startCommand(['backup', target], { SERVICE_DATA_DIR: restored.dataDir })
    await eventually(() => existsSync(join(target, 'shard-0', 'lock.mdb')))
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect([code, stderr]).toEqual([1, expect.stringContaining('Interrupted')])
    expect(existsSync(target)).toBe(false)
    expect((await checkedCall(restored, 'GET /readyz', { key: null })).status).toBe(200)
  })

  it('is aborted by the server when the command is killed, and can be made again', async () => {
    // The server makes one backup at a time, and may still be busy with the interrupted one.
    await eventually(async () => (await backUp(restored.dataDir, join(directory, 'before'))).code === 0)
    const target = join(directory, 'killed')
    const { process: child, ended } = startCommand(['backup', target], { SERVICE_DATA_DIR: restored.dataDir })
    await eventually(() => existsSync(join(target, 'shard-0')))
    child.kill('SIGKILL')
    await ended
    const dataDir = join(directory, 'of-killed')
    const refused = await restore(target, dataDir)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('it is not a backup')])
    expect(existsSync(dataDir)).toBe(false)
    expect((await backUp(restored.dataDir, target)).code).toBe(78)
    let code: number | null = null
    await eventually(async () => {
      const attempt = join(directory, 'after-killed')
      const ended = await backUp(restored.dataDir, attempt)
      code = ended.code
      return code === 0 || !ended.stderr.includes('Another backup')
    })
    expect(code).toBe(0)
  })

  it('fails and leaves no files when the server is killed during the backup', async () => {
    const target = join(directory, 'orphaned')
    const { ended } = startCommand(['backup', target], { SERVICE_DATA_DIR: restored.dataDir })
    await eventually(() => existsSync(join(target, 'shard-0')))
    await restored.halt('SIGKILL')
    const { code } = await ended
    // The copies may have been complete before the kill; then the backup has verified them.
    expect(existsSync(join(target, 'manifest.json'))).toBe(code === 0)
    expect(existsSync(target)).toBe(code === 0)
  })
})
