import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  closeDirect,
  DirectWrites,
  openDirect,
  writeThroughCache,
  type DirectFile,
} from '../../../../workers/store/log/direct-writes.js'
import { DiskPace, fastSyncMs } from '../../../../workers/store/log/disk-pace.js'

let directory: string
let path: string
let file: DirectFile
let writes: DirectWrites

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-direct-'))
  path = join(directory, '1.log')
  writeFileSync(path, Buffer.alloc(65_536))
  file = { fd: openSync(path, 'r+'), direct: openDirect(path) }
  writes = new DirectWrites()
})

afterEach(() => {
  closeDirect(file)
  closeSync(file.fd)
  rmSync(directory, { recursive: true, force: true })
})

/** Memory for direct writes, filled with a byte. */
function filled(bytes: number, fill: number): Buffer {
  // With a new pace each time, because a write on a busy machine may take as long as on a slow disk.
  writes = new DirectWrites()
  const memory = writes.memoryFor(file, bytes)
  expect(memory).toBeDefined()
  return memory?.subarray(0, bytes).fill(fill) ?? Buffer.alloc(0)
}

// Other systems have no O_DIRECT.
describe.runIf(process.platform === 'linux')('direct writes', () => {
  it('are visible to reads through the cache, as are cached writes in the same page', () => {
    writes.write(file, filled(1_024, 1), 512)
    expect(readFileSync(path).subarray(0, 2_048)).toEqual(
      Buffer.concat([Buffer.alloc(512), Buffer.alloc(1_024, 1), Buffer.alloc(512)]),
    )
    writeThroughCache(file, Buffer.alloc(512, 2), 1_536)
    writes.write(file, filled(512, 3), 2_048)
    const found = readFileSync(path)
    expect([0, 512, 1_535, 1_536, 2_047, 2_048, 2_560].map((at) => found[at])).toEqual([0, 1, 1, 2, 2, 3, 0])
  })

  it('go through the cache after the disk has refused an unaligned length', () => {
    writes.write(file, filled(700, 5), 512)
    expect(readFileSync(path).subarray(512, 1_213)).toEqual(
      Buffer.concat([Buffer.alloc(700, 5), Buffer.alloc(1)]),
    )
    expect(file.direct).toBeUndefined()
    expect(writes.memoryFor(file, 512)).toBeUndefined()
  })

  it('fail when the disk fails', () => {
    const bytes = filled(512, 1)
    closeDirect(file)
    file.direct = openSync(path, 'r')
    expect(() => writes.write(file, bytes, 0)).toThrow('EBADF')
  })

  it('are not used when the file system does not support them', () => {
    expect(openDirect('/proc/self/comm')).toBeUndefined()
    expect(() => openDirect(join(directory, 'missing'))).toThrow('ENOENT')
  })

  it('are not used for a segment that is longer than their memory, or on a slow disk', () => {
    expect(writes.memoryFor(file, 1_048_576)).toBeDefined()
    expect(writes.memoryFor(file, 1_048_577)).toBeUndefined()
    const pace = new DiskPace()
    pace.recordSync(10 * fastSyncMs)
    writes = new DirectWrites(pace)
    expect(writes.memoryFor(file, 512)).toBeUndefined()
  })
})
