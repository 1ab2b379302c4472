import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Config, readConfig, readProcessConfig, settings } from '../../../src/settings/config.js'
import { defaultFronts } from '../../../src/settings/threads.js'
import type { Environment, SettingFault } from '../../../src/settings/setting.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'config-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

function valid(env: Environment): Config {
  const reading = readConfig(env)
  if (!reading.ok) throw new Error(`Expected valid settings, got ${JSON.stringify(reading.faults)}`)
  return reading.config
}

function faulty(env: Environment): SettingFault[] {
  const reading = readConfig(env)
  if (reading.ok) throw new Error('Expected wrong settings')
  return reading.faults
}

function faultyNames(env: Environment): string[] {
  return faulty(env).map(({ name }) => name)
}

function warnings(env: Environment): string[] {
  return readConfig(env).warnings
}

describe('readConfig', () => {
  it('returns the documented defaults when nothing is set', () => {
    expect(valid({})).toEqual({
      host: '127.0.0.1',
      httpEngine: 'auto',
      port: 8787,
      dataDir: resolve('data'),
      agentId: 'default',
      fronts: defaultFronts(),
      shardSilenceSecs: 30,
      shutdownTimeoutSecs: 10,
      recordBytesMax: 262_144,
      streamsPerPrincipal: 1_000,
      governedAutoApproveSecs: 60,
      recordCacheBytes: 268_435_456,
      ingestBadLinesMax: 100_000,
      logIntervalSecs: 10,
      rateLimitRps: 100,
      rateLimitBurst: 200,
      rateLimitExempt: [],
      trustedProxies: [],
      corsOrigins: [],
      webhookOrigins: [],
      console: true,
      shown: expect.any(Array),
      signing: 'record',
      environment: 'development',
      logLevel: 'info',
      freeBytesMin: 268_435_456,
      auth: {
        enabled: false,
        issuer: 'strandfast',
        jwtExpirySecs: 3600,
        magicLinkExpirySecs: 900,
        refreshTokenExpirySecs: 2_592_000,
        maxLoginAttempts: 5,
        lockoutDurationSecs: 900,
        metadataBytesMax: 4096,
        requireEmailVerify: false,
        rateLimitRps: 10,
        rateLimitBurst: 20,
        passwordBlocklist: true,
      },
    })
    expect(warnings({})).toEqual([])
  })

  it('has one front for every four cores, at least one', () => {
    expect([1, 2, 7, 8, 12, 64, 192].map((cores) => defaultFronts(cores))).toEqual([1, 1, 1, 2, 3, 16, 16])
  })

  it('has defaults that the parsers accept', () => {
    for (const { default: value, parse } of Object.values(settings)) {
      if (typeof value === 'string' || typeof value === 'number') expect(parse(String(value))).toBeDefined()
    }
  })

  it('returns a frozen configuration', () => {
    const config = valid({ SERVICE_CORS_ORIGINS: 'https://a.example' })
    expect(Object.isFrozen(config)).toBe(true)
    expect(Object.isFrozen(config.corsOrigins)).toBe(true)
  })

  it('reports all wrong settings together, with the given and the allowed values', () => {
    const faults = faulty({ SERVICE_PORT: '70000', SERVICE_SHARDS: '17', SERVICE_SIGNING: 'none' })
    expect(faults).toEqual([
      { name: 'SERVICE_PORT', given: '"70000"', allowed: 'an integer from 0 to 65535' },
      { name: 'SERVICE_SHARDS', given: '"17"', allowed: 'an integer from 1 to 16' },
      { name: 'SERVICE_SIGNING', given: '"none"', allowed: 'record or group' },
    ])
  })

  it('gives a hint about a ~ that the shell did not expand', () => {
    const [fault] = faulty({ SERVICE_DATA_DIR: '~/data' })
    expect(fault?.given).toBe(
      '"~/data" (a shell replaces ~ only outside of quotes: write $HOME, or ./~ for a folder of that name)',
    )
    expect(valid({ SERVICE_DATA_DIR: './~/data' }).dataDir).toBe(resolve('~/data'))
  })

  it.each([
    ['SERVICE_HOST', 'http://localhost'],
    ['SERVICE_HOST', '[::1]'],
    ['SERVICE_PORT', '+1'],
    ['SERVICE_PORT', '1.5'],
    ['SERVICE_PORT', '0x10'],
    ['SERVICE_PORT', ' 1'],
    ['SERVICE_SHARDS', '0'],
    ['SERVICE_AGENT_ID', '.hidden'],
    ['SERVICE_AGENT_ID', 'org::agent'],
    ['SERVICE_AGENT_ID', 'a'.repeat(129)],
    ['SERVICE_MASTER_SEED', 'ab'],
    ['SERVICE_MASTER_SEED', 'g'.repeat(64)],
    ['SERVICE_MASTER_SEED_FILE', '/nonexistent/seed'],
    ['SERVICE_ROOT_API_KEY', 'x'.repeat(31)],
    ['SERVICE_ROOT_API_KEY', ' '.repeat(40)],
    ['SERVICE_SHARD_SILENCE_SECS', '-1'],
    ['SERVICE_FRONTS', '0'],
    ['SERVICE_FRONTS', '17'],
    ['SERVICE_SHUTDOWN_TIMEOUT_SECS', '0'],
    ['SERVICE_RECORD_MAX_BYTES', '1048577'],
    ['SERVICE_GOVERNED_AUTO_APPROVE_SECS', '0'],
    ['SERVICE_GOVERNED_AUTO_APPROVE_SECS', '604801'],
    ['SERVICE_RATE_LIMIT_RPS', '-1'],
    ['SERVICE_TRUSTED_PROXIES', '10.0.0.1'],
    ['SERVICE_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['SERVICE_TRUSTED_PROXIES', '012.0.0.0/8'],
    ['SERVICE_TRUSTED_PROXIES', '10.0.0.0/8,'],
    ['SERVICE_CORS_ORIGINS', '*'],
    ['SERVICE_CORS_ORIGINS', 'null'],
    ['SERVICE_CORS_ORIGINS', 'https://a.example/'],
    ['SERVICE_CORS_ORIGINS', 'https://a.example/path'],
    ['SERVICE_CORS_ORIGINS', 'https://A.example'],
    ['SERVICE_CORS_ORIGINS', 'https://*.example'],
    ['SERVICE_CONSOLE', 'TRUE'],
    ['SERVICE_CONSOLE', '1'],
    ['SERVICE_ENV', 'test'],
    ['SERVICE_LOG_LEVEL', 'verbose'],
    ['SERVICE_MIN_FREE_BYTES', '256M'],
    ['SERVICE_DATA_DIR', '~/data'],
    ['SERVICE_LOG_DIR', '~'],
    ['SERVICE_MASTER_SEED_FILE', '~ops/seed'],
    ['SERVICE_INGEST_POSTGRES_URL', 'mysql://db.example/facts'],
    ['SERVICE_INGEST_POSTGRES_URL', 'db.example/facts'],
    ['SERVICE_INGEST_POSTGRES_URL', 'postgres://db.example/my facts'],
    ['SERVICE_INGEST_POSTGRES_URL', 'postgres://'],
  ])('refuses %s=%s', (name, value) => {
    expect(faultyNames({ [name]: value })).toEqual([name])
  })

  it('accepts allowed values', () => {
    const config = valid({
      SERVICE_HOST: '::',
      SERVICE_PORT: '0',
      SERVICE_SHARDS: '16',
      SERVICE_AGENT_ID: '_my-Agent.1',
      SERVICE_MASTER_SEED: 'AB'.repeat(32),
      SERVICE_ROOT_API_KEY: 'k'.repeat(32),
      SERVICE_RECORD_MAX_BYTES: '1048576',
      SERVICE_RATE_LIMIT_RPS: '0',
      SERVICE_TRUSTED_PROXIES: '10.0.0.0/8, fd00::/8',
      SERVICE_CORS_ORIGINS: 'https://app.example.com,http://localhost:5173',
      SERVICE_SIGNING: 'group',
      SERVICE_MIN_FREE_BYTES: '0',
      SERVICE_INGEST_POSTGRES_URL: 'postgresql://writer:secret@db.example:5433/facts?sslmode=require',
    })
    expect(config).toMatchObject({
      host: '::',
      port: 0,
      shards: 16,
      agentId: '_my-Agent.1',
      masterSeed: Buffer.alloc(32, 0xab),
      rootApiKey: 'k'.repeat(32),
      recordBytesMax: 1_048_576,
      rateLimitRps: 0,
      trustedProxies: ['10.0.0.0/8', 'fd00::/8'],
      corsOrigins: ['https://app.example.com', 'http://localhost:5173'],
      signing: 'group',
      freeBytesMin: 0,
      ingestPostgresUrl: 'postgresql://writer:secret@db.example:5433/facts?sslmode=require',
    })
  })

  it('accepts several hosts of the database for ingested records', () => {
    const url = 'postgres://writer:secret@one:5432,two:5433/facts'
    expect(valid({ SERVICE_INGEST_POSTGRES_URL: url }).ingestPostgresUrl).toBe(url)
  })

  it('shows only the length of a secret', () => {
    const env = {
      SERVICE_ROOT_API_KEY: 'hunter2',
      SERVICE_MASTER_SEED: 'deadbeef',
      SERVICE_INGEST_POSTGRES_URL: 'postgre://writer:swordfish@db.example/facts',
    }
    const shown = JSON.stringify(readConfig(env))
    expect(shown).toContain('7 characters')
    expect(shown).toContain('8 characters')
    expect(shown).not.toContain('hunter2')
    expect(shown).not.toContain('deadbeef')
    expect(shown).not.toContain('swordfish')
  })

  it('does not show a seed in the setting of a file', () => {
    const seed = 'c0ffee00'.repeat(8)
    expect(JSON.stringify(readConfig({ SERVICE_MASTER_SEED_FILE: seed }))).not.toContain(seed)
  })

  it('truncates a long value', () => {
    const [fault] = faulty({ SERVICE_ENV: 'x'.repeat(5000) })
    expect(fault?.given).toBe(`"${'x'.repeat(100)}" and 4900 characters more`)
  })

  it('reads a seed file with hex digits and a line break, or with 32 bytes', () => {
    const seed = Buffer.alloc(32, 0x5a)
    const ofHex = valid({ SERVICE_MASTER_SEED_FILE: file('seed.hex', `${seed.toString('hex')}\n`) })
    const ofBytes = valid({ SERVICE_MASTER_SEED_FILE: file('seed.bin', seed) })
    expect(ofHex.masterSeed).toEqual(seed)
    expect(ofBytes.masterSeed).toEqual(seed)
    expect(faultyNames({ SERVICE_MASTER_SEED_FILE: file('seed.short', 'abcd') })).toEqual([
      'SERVICE_MASTER_SEED_FILE',
    ])
  })

  it('refuses a master seed in both settings', () => {
    const hex = 'ab'.repeat(32)
    expect(
      faultyNames({ SERVICE_MASTER_SEED: hex, SERVICE_MASTER_SEED_FILE: file('seed.both', hex) }),
    ).toEqual(['SERVICE_MASTER_SEED_FILE'])
  })

  it('requires certificate and key together', () => {
    const tls = join(import.meta.dirname, '../../support/http/tls')
    const [certificate, key] = [join(tls, 'cert.pem'), join(tls, 'key.pem')]
    expect(faulty({ SERVICE_TLS_CERT_FILE: certificate })).toMatchObject([
      { name: 'SERVICE_TLS_KEY_FILE', given: 'nothing' },
    ])
    expect(faultyNames({ SERVICE_TLS_KEY_FILE: key })).toEqual(['SERVICE_TLS_CERT_FILE'])
    expect(valid({ SERVICE_TLS_CERT_FILE: certificate, SERVICE_TLS_KEY_FILE: key }).tls).toEqual({
      certFile: certificate,
      keyFile: key,
    })
  })

  it('does not distinguish an empty setting from one that is not set', () => {
    const empty = Object.fromEntries(Object.values(settings).map(({ name }) => [name, '']))
    expect(readConfig({ ...empty, SERVICE_SOMETHING_ELSE: '' })).toEqual(readConfig({}))
    for (const name of Object.keys(empty)) expect(readConfig({ [name]: '' }), name).toEqual(readConfig({}))
    const [cert, key] = [file('empty-cert', ''), '']
    expect(faulty({ SERVICE_TLS_CERT_FILE: cert, SERVICE_TLS_KEY_FILE: key })).toEqual(
      faulty({ SERVICE_TLS_CERT_FILE: cert }),
    )
    expect(warnings({ SERVICE_WEBAUTHN_RP_ID: 'example.com', SERVICE_WEBAUTHN_ORIGIN: '' })).toEqual(
      warnings({ SERVICE_WEBAUTHN_RP_ID: 'example.com' }),
    )
  })

  it('refuses an empty setting that a flag gives, so that a command uses no other data directory', () => {
    const fault = { name: 'SERVICE_DATA_DIR', given: 'an empty text', allowed: settings.dataDir.allowed }
    expect(readProcessConfig({ SERVICE_DATA_DIR: '' })).toMatchObject({ ok: false, faults: [fault] })
  })

  it('refuses a setting of an earlier version, and says what to do', () => {
    for (const given of ['true', 'false', 'x'])
      expect(faulty({ SERVICE_DATA_OPEN: given })).toEqual([
        {
          name: 'SERVICE_DATA_OPEN',
          given: JSON.stringify(given),
          allowed: expect.stringMatching(/^nothing: .* root key, which the first start makes/),
        },
      ])
    expect(warnings({ SERVICE_DATA_OPEN: 'true' })).toEqual([])
    expect(Object.values(settings).map(({ name }) => name)).not.toContain('SERVICE_DATA_OPEN')
  })

  it('warns about unknown settings and suggests similar names', () => {
    expect(
      warnings({ SERVICE_PROT: '1', SERVICE_RATELIMIT_RPS: '1', SERVICE_SOMETHING_ELSE: '1', PORT: '1' }),
    ).toEqual([
      'SERVICE_PROT is not a setting of this version; did you mean SERVICE_PORT?',
      'SERVICE_RATELIMIT_RPS is not a setting of this version; did you mean SERVICE_RATE_LIMIT_RPS?',
      'SERVICE_SOMETHING_ELSE is not a setting of this version',
    ])
  })

  it('warns about unknown settings also if there are faults', () => {
    const reading = readConfig({ SERVICE_PROT: '1', SERVICE_PORT: 'x' })
    expect(reading.ok).toBe(false)
    expect(reading.warnings).toHaveLength(1)
  })
})
