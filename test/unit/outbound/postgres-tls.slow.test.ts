import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Session } from '../../../src/cluster/database/session.js'
import { connectPostgres } from '../../../src/outbound/postgres.js'
import { makePostgres, noPostgres, serverUser, type TestPostgres } from '../../support/postgres/postgres.js'

const tls = join(import.meta.dirname, '../../support/http/tls')

describe.skipIf(noPostgres)('a PostgreSQL server with TLS', () => {
  let postgres: TestPostgres
  let folder: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'postgres-tls-'))
    postgres = await makePostgres({
      settings: { ssl: 'on', ssl_cert_file: 'cert.pem', ssl_key_file: 'key.pem' },
    })
    const { uid, gid } = serverUser()
    for (const name of ['cert.pem', 'key.pem']) {
      const copy = join(postgres.data, name)
      // PostgreSQL refuses a key that other users can read.
      writeFileSync(copy, readFileSync(join(tls, name)), { mode: 0o600 })
      if (uid !== undefined && gid !== undefined) chownSync(copy, uid, gid)
    }
    await postgres.start()
  })

  afterAll(async () => {
    await postgres.remove()
    rmSync(folder, { recursive: true })
  })

  /** The URL with a file of the certificate after this text. */
  function urlWith(start: string): string {
    const file = join(folder, 'root.pem')
    writeFileSync(file, `${start}${readFileSync(join(tls, 'cert.pem'), 'utf8')}`)
    return `${postgres.url}?sslmode=verify-full&sslrootcert=${file}`
  }

  it.each(['', '\uFEFF'])(
    'is trusted by the sink and by a cluster with its certificate after %j',
    async (start) => {
      const url = urlWith(start)
      const connection = await connectPostgres({ url, store: '' }, new AbortController().signal)
      expect((await connection.cursors()).size).toBe(0)
      connection.close()
      const session = await Session.open([url])
      expect(await session.rows('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).toEqual([
        { ssl: true },
      ])
      session.drop()
    },
  )
})
