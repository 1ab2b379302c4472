import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { version } from '../../src/base/version.js'
import { serverRoute } from '../../src/front/routes/server.js'
import { settings } from '../../src/settings/config.js'
import type { Setting } from '../../src/settings/setting.js'
import { eventually } from '../support/eventually.js'
import { checkedCall, scopedKey, untestedSuccesses } from '../support/http/answers.js'
import { issueLicense, startAuthServer } from '../support/server/auth-server.js'
import { backUp } from '../support/server/backup.js'
import { type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_RECORD_MAX_BYTES: '4096' } })
})
afterAll(() => server.stop())

const list: readonly Setting<unknown>[] = Object.values(settings)
const settingOf = (body: { settings: { name: string }[] }, name: string) =>
  body.settings.find((one) => one.name === name)

describe('the server information', () => {
  it('contains version, shards, features, license and settings', async () => {
    const { body, headers } = await checkedCall(server, 'GET /v1/server')
    expect(body).toMatchObject({ version, read_only: false, serving: true })
    expect(body.started_at_ms).toBeLessThanOrEqual(Date.now())
    expect(body.shards.length).toBeGreaterThan(0)
    expect(body.features).toMatchObject({
      auth: true,
      mail: false,
      postgres: false,
      server_log: true,
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

  it('counts written records', async () => {
    const records = async () => {
      const { body } = await checkedCall(server, 'GET /v1/server')
      return body.shards.reduce((sum: number, shard: { records: number }) => sum + shard.records, 0)
    }
    const before = await records()
    await checkedCall(server, 'POST /v1/collections/counted/records', { body: { data: { n: 1 } } })
    await eventually(async () => (await records()) > before)
  })

  it('shows when its stores were copied for a backup', async () => {
    const copied = async () => (await checkedCall(server, 'GET /v1/server')).body.last_backup_copy_at_ms
    expect(await copied()).toBeNull()
    const before = Date.now()
    const target = mkdtempSync(join(tmpdir(), 'strandfast-backup-'))
    expect((await backUp(server.dataDir, target)).code).toBe(0)
    await eventually(async () => (await copied()) >= before)
    rmSync(target, { recursive: true })
  })

  it('requires an admin key that is not limited to agents', async () => {
    expect((await checkedCall(server, 'GET /v1/server', { key: null })).status).toBe(401)
    const reader = await scopedKey(server, ['records:read', 'agents:admin', 'proposals:decide'])
    expect((await checkedCall(server, 'GET /v1/server', { key: reader.key })).status).toBe(403)
    const limited = await scopedKey(server, ['admin:*'], ['a*'])
    expect((await checkedCall(server, 'GET /v1/server', { key: limited.key })).status).toBe(403)
    const credentials = { email: 'ann@example.com', password: 'correct horse battery' }
    const { body } = await checkedCall(server, 'POST /v1/auth/register', { body: credentials, key: null })
    expect((await checkedCall(server, 'GET /v1/server', { key: body.token })).status).toBe(403)
    expect((await checkedCall(server, 'GET /v1/server?x=1')).status).toBe(400)
  })
})

/** Secret files of a data directory, each as text and as hex. */
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

it('shows neither the license key nor a secret of the data directory', async () => {
  const license = await issueLicense(server.dataDir)
  const { text: own } = await checkedCall(server, 'GET /v1/server')
  for (const secret of [license, ...secretsIn(server.dataDir)]) expect(own).not.toContain(secret)
})

it('the server answered every documented success', () => {
  expect(untestedSuccesses([serverRoute])).toEqual([])
})
