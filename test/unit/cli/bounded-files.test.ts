import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readBounded } from '../../../src/base/bounded-file.js'
import { startCommand } from '../../support/server/backup.js'

/* Files given to a command may be endless, such as /dev/zero, or symbolic links. */

const vectors = join(import.meta.dirname, '../../vectors/export.ndjson')
const publicKey = '03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8'

let directory: string

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-bounded-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

/** Runs a command. One that reads without end is killed and then has no exit code. */
async function run(args: string[], env: Record<string, string> = {}) {
  const command = startCommand(args, { SERVICE_DATA_DIR: join(directory, 'data'), ...env })
  const timer = setTimeout(() => command.process.kill('SIGKILL'), 20_000)
  await once(command.process, 'exit')
  clearTimeout(timer)
  return command.ended
}

describe.skipIf(process.platform === 'win32')('an endless file', () => {
  it.each<[name: string, args: string[], code: number]>([
    [
      '--checkpoint of verify',
      ['verify', vectors, '--public-key', publicKey, '--checkpoint', '/dev/zero'],
      66,
    ],
    ['--state of witness', ['witness', '--state', '/dev/zero', '--url', 'http://127.0.0.1:1'], 1],
    ['--seed-file of import', ['import', vectors, '--seed-file', '/dev/zero'], 78],
  ])('is refused as %s', async (_name, args, code) => {
    const ended = await run(args)
    expect(ended.stdout + ended.stderr).toContain('EFBIG: expected at most 65536 bytes')
    expect(ended.code).toBe(code)
  })

  it('is refused as SERVICE_MASTER_SEED_FILE', async () => {
    const ended = await run(['check'], { SERVICE_MASTER_SEED_FILE: '/dev/zero' })
    expect(ended.code).toBe(78)
    expect(ended.stderr).toContain('SERVICE_MASTER_SEED_FILE')
  })

  it('is refused as format.json of the data directory', () => {
    const file = join(directory, 'format.json')
    symlinkSync('/dev/zero', file)
    expect(() => readBounded(file, 10)).toThrow('EFBIG')
  })
})
