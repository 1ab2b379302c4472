import { createHash } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { RandomBytes } from '../../src/base/random.js'
import { logFolder } from '../../src/store-files/log-folder.js'
import { storeTables } from '../../src/store-files/store-tables.js'
import type { LicenseAudit } from '../../src/protocol/audit-messages.js'
import type { Change } from '../../src/protocol/auth-messages.js'
import type { Command } from '../../src/protocol/messages.js'
import { FileLog } from '../../workers/store/log/file-log.js'
import { positionKey } from '../../workers/store/log/position.js'
import type { OpenLog } from '../../workers/store/log/shard-log.js'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { fillShard } from '../support/shard/full-shard.js'
import { appendNumber, keyed, TestShard } from '../support/shard/shard.js'

/** The same bytes in every run. */
function seededRandom(): RandomBytes {
  let calls = 0
  return (count) => createHash('shake256', { outputLength: count }).update(`${calls++}`).digest()
}

const digestOf = (parts: Iterable<Uint8Array>): string => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length} `).update(part)
  return hash.digest('hex')
}

/** Commands that write to the tables which `fillShard` leaves empty. */
function more(shard: TestShard): void {
  const [options, agent, email] = [{}, 'default', 'ada@example.com']
  const origin = { ip: '192.0.2.1', userAgent: 'test', requestId: 'r-1' }
  const expiresAtMs = shard.nowMs + 900_000
  const link = { purpose: 'magicLink', hash: 'ab'.repeat(32), expiresAtMs, mailToken: 'token' } as const
  const change = (one: Change): Command => ({
    kind: 'authChange',
    agent,
    namespace: '',
    change: one,
    origin,
    options,
  })
  const license: LicenseAudit = {
    state: 'valid',
    licensee: 'A',
    expires_at_ms: null,
    features: [],
    authority: null,
  }
  const entry = { type: 'sys/license', body: license } as const
  const heads = [{ strand: '12'.repeat(32), size: 4, hash: '34'.repeat(32) }]
  const hlc = { ms: shard.nowMs, counter: 0 }
  const all: Command[] = [
    {
      kind: 'apiKeyCreate',
      name: 'k',
      scopes: ['records:read'],
      agents: [],
      maker: 'root',
      options: keyed('k'),
    },
    { kind: 'organismCreate', agent: 'acme::auth', organismId: 'acme', name: 'A', members: [], options },
    { kind: 'keyClaim', publicKey: 'cd'.repeat(32), agent: 'claimed' },
    change({ kind: 'linkSend', email, link }),
    change({ kind: 'loginFailed', email }),
    change({ kind: 'loginSucceeded', email, passwordHash: 'x' }),
    change({ kind: 'userLogout', email }),
    { kind: 'auditAppend', agent: 'server::audit', entry, changesOnly: true, options },
    { kind: 'logOpen', agent: 'server::log', options },
    { kind: 'logAppend', agent: 'server::log', clocks: [hlc], heads, options },
  ]
  for (const one of all) shard.ask(one)
  shard.run(...all, appendNumber('emerged', 1))
}

// Stored bytes are a format: a change of the engine must not change them.
it('a shard writes the same segments and rows for the same commands', async () => {
  const path = mkdtempSync(join(tmpdir(), 'strandfast-shard-'))
  const segments = createHash('sha256')
  const openLog: OpenLog = (from) => {
    const log = FileLog.open(join(path, logFolder), from)
    const append = log.append.bind(log)
    log.append = (content) => {
      const bytes = Buffer.alloc(content.bytes)
      content.write(bytes)
      segments.update(`${bytes.length} `).update(bytes)
      append(content)
    }
    return log
  }
  const shard = new TestShard(path, { random: seededRandom(), openLog })
  fillShard(shard)
  more(shard)
  shard.runBackgroundWork()
  await shard.close()
  const environment = openEnvironment(shard.path, 'read')
  const rows = Object.fromEntries(
    storeTables.map((name) => {
      const table: { getRange(range: object): Iterable<{ key: Buffer; value: Buffer }> } = environment[name]
      // The log begins with a random hash.
      const all = Array.from(table.getRange({}), ({ key, value }) => [
        Buffer.from(key),
        Buffer.from(value),
      ]).filter(([key]) => key?.equals(positionKey) !== true)
      return [name, all.length === 0 ? 'empty' : digestOf(all.flat()).slice(0, 16)]
    }),
  )
  await environment.root.close()
  expect({ segments: segments.digest('hex'), ...rows }).toMatchSnapshot()
  await shard.remove()
})
