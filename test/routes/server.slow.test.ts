import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { settings } from '../../src/settings/config.js'
import type { Setting } from '../../src/settings/setting.js'
import { checkedCall } from '../support/http/answers.js'
import { makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { startServer, testRootKey } from '../support/server/server.js'

const list: readonly Setting<unknown>[] = Object.values(settings)
const settingOf = (body: { settings: { name: string }[] }, name: string) =>
  body.settings.find((one) => one.name === name)

/** A valid value of each secret, with a canary that must never appear. */
const canaries: Record<string, { value: string; canary: string }> = {
  SERVICE_MASTER_SEED: { value: 'c0ffee01'.repeat(8), canary: 'c0ffee01' },
  SERVICE_ROOT_API_KEY: { value: testRootKey, canary: testRootKey },
  // For the database that the test starts.
  SERVICE_CLUSTER_URL: { value: 'postgres://u:canary-cluster@127.0.0.1:1/x', canary: 'canary-cluster' },
  SERVICE_INGEST_POSTGRES_URL: { value: 'postgres://u:canary-pg@127.0.0.1:1/x', canary: 'canary-pg' },
  SERVICE_LICENSE_KEY: { value: 'canary.license.key', canary: 'canary.license' },
  SERVICE_MAIL_SMTP_URL: { value: 'smtps://u:canary-mail@127.0.0.1:1', canary: 'canary-mail' },
  SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: { value: 'canary-google', canary: 'canary-google' },
  SERVICE_OAUTH_GITHUB_CLIENT_SECRET: { value: 'canary-github', canary: 'canary-github' },
}

/** Other settings that the secrets require. */
const otherSettings = {
  SERVICE_AUTH_ENABLED: 'true',
  SERVICE_MAIL_ENABLED: 'true',
  SERVICE_MAIL_FROM: 'shown-from@example.com',
  SERVICE_MAIL_LINK_BASE_URL: 'https://shown-base.example',
  SERVICE_OAUTH_GOOGLE_CLIENT_ID: 'shown-google',
  SERVICE_OAUTH_GITHUB_CLIENT_ID: 'shown-github',
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
      ...otherSettings,
    }
    if (cluster !== undefined) {
      const url = new URL(cluster.postgres.url)
      // The database requires no password.
      url.password = 'canary-cluster'
      env['SERVICE_CLUSTER_URL'] = url.href
      expect(await cluster.run(['cluster', 'init', '--shards', '2'], env)).toMatchObject({ status: 0 })
    }
    const one = await startServer({ env })
    const { text, body } = await checkedCall(one, 'GET /v1/server')
    for (const [name, { canary, value }] of Object.entries(given)) {
      expect(settingOf(body, name)).toMatchObject({ value: null, is_secret: true, is_set: true })
      for (const form of [canary, Buffer.from(value).toString('base64'), Buffer.from(value).toString('hex')])
        expect([name, text.includes(form)]).toEqual([name, false])
      // Another route for the same administrator does not show it either.
      expect((await checkedCall(one, 'GET /v1/whoami')).text).not.toContain(canary)
    }
    for (const shown of Object.values(otherSettings)) expect(text).toContain(shown)
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

  it('is not shown from a file, whose path is shown, nor if it was put into another setting', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'strandfast-seed-'))
    const file = join(folder, 'seed')
    const seed = 'deadbe01'.repeat(8)
    writeFileSync(file, seed)
    const misplaced = 'ab'.repeat(32)
    const one = await startServer({
      env: { SERVICE_MASTER_SEED_FILE: file, SERVICE_AGENT_ID: misplaced, SERVICE_AUTH_ISSUER: misplaced },
    })
    const { text, body } = await checkedCall(one, 'GET /v1/server')
    expect(settingOf(body, 'SERVICE_MASTER_SEED_FILE')).toMatchObject({ value: file })
    for (const form of [seed, Buffer.from(seed, 'hex').toString('base64'), '"data":[222,173', misplaced])
      expect(text).not.toContain(form)
    expect(settingOf(body, 'SERVICE_AUTH_ISSUER')).toMatchObject({ value: null, is_set: true })
    await one.stop()
    rmSync(folder, { recursive: true })
  })
})
