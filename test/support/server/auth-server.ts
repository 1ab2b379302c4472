import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueLicense as sign } from '../../../dist/src/auth/license.js'
import { pooledRandom } from '../../../dist/src/base/random.js'
import { openAuthority } from '../../../dist/src/data/license-authority.js'
import { startServer, type TestServer, type TestServerOptions } from './server.js'

/** Issues a license key by the authority of `dataDir`, which is created if needed, like `license issue`. */
export async function issueLicense(dataDir: string): Promise<string> {
  const authority = openAuthority(dataDir, pooledRandom())
  if (!authority.ok) throw new Error(authority.detail)
  return sign(authority.seed, { licensee: 'Test', days: 365, features: ['auth'] }, Date.now())
}

/** Starts a real server with the licensed auth add-on. Both rate limits are off unless `env` sets them. */
export async function startAuthServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'strandfast-'))
  return startServer({
    ...options,
    dataDir,
    env: {
      SERVICE_AUTH_ENABLED: 'true',
      SERVICE_LICENSE_KEY: await issueLicense(dataDir),
      SERVICE_AUTH_RATE_LIMIT_RPS: '0',
      ...options.env,
    },
  })
}
