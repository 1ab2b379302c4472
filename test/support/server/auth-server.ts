import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer, type TestServer, type TestServerOptions } from './server.js'

const entry = join(import.meta.dirname, '../../../dist/program/strandfast.js')

/** A license key of the authority of `dataDir`, which is made when there is none. */
export function issueLicense(dataDir: string): string {
  const env = { PATH: process.env['PATH'], SERVICE_DATA_DIR: dataDir }
  const args = [entry, 'license', 'issue', '--licensee', 'Test']
  const stdio = ['ignore', 'pipe', 'ignore'] as const
  return execFileSync(process.execPath, args, { env, encoding: 'utf8', stdio: [...stdio] }).trim()
}

/** A real server with the auth add-on on and licensed. Both rate limits are off unless `env` sets them. */
export function startAuthServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'strandfast-'))
  return startServer({
    ...options,
    dataDir,
    env: {
      SERVICE_AUTH_ENABLED: 'true',
      SERVICE_LICENSE_KEY: issueLicense(dataDir),
      SERVICE_AUTH_RATE_LIMIT_RPS: '0',
      ...options.env,
    },
  })
}
