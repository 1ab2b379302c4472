import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pooledRandom } from '../../../dist/src/base/random.js'
import { readConfig } from '../../../dist/src/settings/config.js'
import { openDataDirectory } from '../../../dist/src/data/directory.js'
import { serve } from '../../../dist/src/main.js'
import { testRootKey, type ServerAddress } from './server.js'

/** The built server in the process of the test, for tests that manipulate its threads. */
export interface InProcessServer extends ServerAddress {
  dataDir: string
  /** Stops it and removes its data directory. */
  stop(): Promise<void>
}

/** Starts the built server in this process. Rate limits are off unless `env` sets them. */
export async function startInProcess(env: Record<string, string> = {}): Promise<InProcessServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'strandfast-'))
  const reading = readConfig({
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PORT: '0',
    SERVICE_SHARDS: '2',
    SERVICE_ROOT_API_KEY: testRootKey,
    SERVICE_RATE_LIMIT_RPS: '0',
    SERVICE_LOG_LEVEL: 'silent',
    SERVICE_MIN_FREE_BYTES: '0',
    ...env,
  })
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults))
  const opening = openDataDirectory(reading.config, pooledRandom())
  if (!opening.ok) throw new Error(opening.detail)
  const { directory } = opening
  const server = await serve(reading.config, directory)
  if (server === undefined) throw new Error('The server was stopped during its start')
  return {
    url: server.url,
    rootKey: testRootKey,
    dataDir,
    async stop() {
      await server.stop()
      directory.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
