import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { version } from '../../src/base/version.js'
import { serverRoute } from '../../src/routes/server.js'
import { settings } from '../../src/settings/config.js'
import type { Setting } from '../../src/settings/setting.js'
import { eventually } from '../support/eventually.js'
import { ask, scopedKey, unseenSuccesses } from '../support/http/answers.js'
import { issueLicense, startAuthServer } from '../support/server/auth-server.js'
import { makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { backUp } from '../support/server/backup.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_RECORD_MAX_BYTES: '4096' } })
})
afterAll(() => server.stop())

const list: readonly Setting<unknown>[] = Object.values(settings)
const settingOf = (body: { settings: { name: string }[] }, name: string) =>
  body.settings.find((one) => one.name === name)

describe('what a server tells of itself', () => {
  it('is its version, its shards, what is on, its license and its settings', async () => {
    const { body, headers } = await ask(server, 'GET /v1/server')
    expect(body).toMatchObject({ version, read_only: false, serving: true })
    expect(body.started_at_ms).toBeLessThanOrEqual(Date.now())
    expect(body.shards.length).toBeGreaterThan(0)
    expect(body.features).toMatchObject({
      auth: true,
      mail: false,
      postgres: false,
      server_log: true,
      data_open: false,
    })
    expect(body.license).toMatchObject({ state: 'valid', licensee: 'Test', features: ['auth'] })
    expect(body.settings.map(({ name }: { name: string }) => name)).toEqual(list.map(({ name }) => name))
    expect(settingOf(body, 'SERVICE_RECORD_MAX_BYTES')).toMatchObject({
      value: '4096',
      is_set: true,
      is_secret: false,
    })
    expect(settingOf(body, 'SERVICE_AGENT_ID')).toMatchObject({
      value: null,
      default: 'default',
      is_set: false,
    })
    expect(body.cluster).toBeNull()
    expect(headers.get('cache-control')).toBe('no-store')
  })

  it('counts the records that are written', async () => {
    const records = async () => {
      const { body } = await ask(server, 'GET /v1/server')
      return body.shards.reduce((sum: number, shard: { records: number }) => sum + shard.records, 0)
    }
    const before = await records()
    await ask(server, 'POST /v1/collections/counted/records', { body: { data: { n: 1 } } })
    await eventually(async () => (await records()) > before)
  })

  it('tells when its stores were copied for a backup', async () => {
    const copied = async () => (await ask(server, 'GET /v1/server')).body.last_backup_copy_at_ms
    expect(await copied()).toBeNull()
    const before = Date.now()
    const target = mkdtempSync(join(tmpdir(), 'strandfast-backup-'))
    expect((await backUp(server.dataDir, target)).code).toBe(0)
    await eventually(async () => (await copied()) >= before)
    rmSync(target, { recursive: true })
  })

  it('is for keys of administrators alone, without a limit to agents', async () => {
    expect((await ask(server, 'GET /v1/server', { key: null })).status).toBe(401)
    const reader = await scopedKey(server, ['records:read', 'agents:admin', 'proposals:decide'])
    expect((await ask(server, 'GET /v1/server', { key: reader.key })).status).toBe(403)
    const limited = await scopedKey(server, ['admin:*'], ['a*'])
    expect((await ask(server, 'GET /v1/server', { key: limited.key })).status).toBe(403)
    const credentials = { email: 'ann@example.com', password: 'correct horse battery' }
    const { body } = await ask(server, 'POST /v1/auth/register', { body: credentials, key: null })
    expect((await ask(server, 'GET /v1/server', { key: body.token })).status).toBe(403)
    expect((await ask(server, 'GET /v1/server?x=1')).status).toBe(400)
  })
})

/** A valid value of each secret, with something in it that must never be shown. */
const canaries: Record<string, { value: string; canary: string }> = {
  SERVICE_MASTER_SEED: { value: 'c0ffee01'.repeat(8), canary: 'c0ffee01' },
  SERVICE_ROOT_API_KEY: { value: testRootKey, canary: testRootKey },
  // Of the database that the test starts.
  SERVICE_CLUSTER_URL: { value: 'postgres://u:canary-cluster@127.0.0.1:1/x', canary: 'canary-cluster' },
  SERVICE_INGEST_POSTGRES_URL: { value: 'postgres://u:canary-pg@127.0.0.1:1/x', canary: 'canary-pg' },
  SERVICE_LICENSE_KEY: { value: 'canary.license.key', canary: 'canary.license' },
  SERVICE_MAIL_SMTP_URL: { value: 'smtps://u:canary-mail@127.0.0.1:1', canary: 'canary-mail' },
  SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: { value: 'canary-google', canary: 'canary-google' },
  SERVICE_OAUTH_GITHUB_CLIENT_SECRET: { value: 'canary-github', canary: 'canary-github' },
}

/** What secrets need beside them. */
const beside = {
  SERVICE_AUTH_ENABLED: 'true',
  SERVICE_MAIL_ENABLED: 'true',
  SERVICE_MAIL_FROM: 'shown-from@example.com',
  SERVICE_MAIL_LINK_BASE_URL: 'https://shown-base.example',
  SERVICE_OAUTH_GOOGLE_CLIENT_ID: 'shown-google',
  SERVICE_OAUTH_GITHUB_CLIENT_ID: 'shown-github',
}

/** Files of a data directory that nobody may see, each as text and as hex. */
function secretsIn(dataDir: string): string[] {
  const small = readdirSync(dataDir, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /seed|key|authority|secret/.test(entry.name))
    .map(({ name }) => join(dataDir, name))
    .filter((path) => statSync(path).size >= 32)
  expect(small.length).toBeGreaterThan(0)
  return small.flatMap((path) => {
    const bytes = readFileSync(path)
    return [bytes.toString('latin1').trim(), bytes.toString('hex'), bytes.toString('base64')]
  })
}

describe('a secret', () => {
  it('is never shown, whichever setting it is in', async () => {
    expect(Object.keys(canaries).sort()).toEqual(
      list
        .filter(({ secret }) => secret === true)
        .map(({ name }) => name)
        .sort(),
    )
    const { SERVICE_CLUSTER_URL: _ofCluster, ...others } = canaries
    const cluster = noPostgres ? undefined : await makeClusterOfOne()
    const given = cluster === undefined ? others : canaries
    const env: Record<string, string> = {
      ...Object.fromEntries(Object.entries(given).map(([name, { value }]) => [name, value])),
      ...beside,
    }
    if (cluster !== undefined) {
      const url = new URL(cluster.postgres.url)
      // The database asks nobody for it.
      url.password = 'canary-cluster'
      env['SERVICE_CLUSTER_URL'] = url.href
      expect(await cluster.run(['cluster', 'init', '--shards', '2'], env)).toMatchObject({ status: 0 })
    }
    const one = await startServer({ env })
    const { text, body } = await ask(one, 'GET /v1/server')
    for (const [name, { canary, value }] of Object.entries(given)) {
      expect(settingOf(body, name)).toMatchObject({ value: null, is_secret: true, is_set: true })
      for (const form of [canary, Buffer.from(value).toString('base64'), Buffer.from(value).toString('hex')])
        expect([name, text.includes(form)]).toEqual([name, false])
      // The answer of another route to the same administrator does not have it either.
      expect((await ask(one, 'GET /v1/whoami')).text).not.toContain(canary)
    }
    for (const shown of Object.values(beside)) expect(text).toContain(shown)
    expect(body.features).toMatchObject({
      mail: true,
      postgres: true,
      oauth_google: true,
      oauth_github: true,
    })
    expect(body.license).toMatchObject({ state: 'absent' })
    await one.stop()
    await cluster?.remove()
  })

  it('is not shown from a file or the data directory, but the path of the file is', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'strandfast-seed-'))
    const file = join(folder, 'seed')
    const seed = 'deadbe01'.repeat(8)
    writeFileSync(file, seed)
    const one = await startServer({ env: { SERVICE_MASTER_SEED_FILE: file } })
    const { text, body } = await ask(one, 'GET /v1/server')
    expect(settingOf(body, 'SERVICE_MASTER_SEED_FILE')).toMatchObject({ value: file })
    for (const form of [seed, Buffer.from(seed, 'hex').toString('base64'), '"data":[222,173'])
      expect(text).not.toContain(form)
    await one.stop()
    rmSync(folder, { recursive: true })
    // Of a server that made its seed and its license authority itself.
    const license = await issueLicense(server.dataDir)
    const { text: own } = await ask(server, 'GET /v1/server')
    for (const secret of [license, ...secretsIn(server.dataDir)]) expect(own).not.toContain(secret)
  })

  it('is not shown where it was put into a setting for another text', async () => {
    const seed = 'ab'.repeat(32)
    const one = await startServer({ env: { SERVICE_AGENT_ID: seed, SERVICE_AUTH_ISSUER: seed } })
    const { text, body } = await ask(one, 'GET /v1/server')
    expect(text).not.toContain(seed)
    expect(settingOf(body, 'SERVICE_AUTH_ISSUER')).toMatchObject({ value: null, is_set: true })
    await one.stop()
  })
})

it('the server answered every documented success', () => {
  expect(unseenSuccesses([serverRoute])).toEqual([])
})
