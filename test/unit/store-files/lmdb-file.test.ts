import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { beginningFault, structureFault, type PageUse } from '../../../src/store-files/lmdb-file.js'
import { storeFault } from '../../../src/cli/doctor-data.js'
import { commitDurably } from '../../../workers/store/environment.js'
import { openEnvironment } from '../../../workers/store/open-environment.js'

const PAGE_BYTES = 4_096

let directory: string
let store: string
let file: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-pages-'))
  store = join(directory, 'store')
  file = join(store, 'data.mdb')
  const environment = openEnvironment(store, 'write')
  const { agents } = environment
  const put = (n: number, bytes: number) => agents.put(Buffer.from(`agent-${n}`), Buffer.alloc(bytes, n))
  commitDurably(environment, () => {
    for (let n = 0; n < 500; n++) put(n, 100)
    for (let n = 500; n < 510; n++) put(n, 20_000)
  })
  // Frees pages.
  commitDurably(environment, () => {
    for (let n = 0; n < 505; n += 2) agents.remove(Buffer.from(`agent-${n}`))
  })
  await environment.root.close()
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

function pages(): Map<number, PageUse> {
  const found = new Map<number, PageUse>()
  expect(structureFault(file, { page: (pageNo, use) => void found.set(pageNo, use) })).toBeUndefined()
  return found
}

function pageOf(kind: PageUse['kind']): number {
  for (const [pageNo, use] of pages()) if (use.kind === kind && use.table === 'agents') return pageNo
  throw new Error(`Expected a ${kind} page`)
}

function change(work: (bytes: Buffer) => Buffer | void): void {
  const bytes = readFileSync(file)
  writeFileSync(file, work(bytes) ?? bytes)
}

async function opening(): Promise<string> {
  try {
    await openEnvironment(store, 'write').root.close()
    return 'opened'
  } catch (error) {
    return String(error)
  }
}

describe('the pages of a store', () => {
  it('pass the check when nothing has changed', () => {
    expect(beginningFault(file)).toBeUndefined()
    const kinds = new Set([...pages().values()].map(({ kind, table }) => `${table} ${kind}`))
    for (const kind of ['agents branch', 'agents leaf', 'agents overflow', 'free leaf', ' leaf'])
      expect(kinds).toContain(kind)
  })

  it.each(['branch', 'leaf', 'overflow'] as const)(
    'fail the check when a %s page is replaced by another',
    (kind) => {
      const pageNo = pageOf(kind)
      change((bytes) => {
        bytes.copy(bytes, pageNo * PAGE_BYTES, 0, PAGE_BYTES)
      })
      expect(structureFault(file)).toContain(`page ${pageNo}`)
    },
  )

  it('fail the check when a row is missing from its page', () => {
    const at = pageOf('leaf') * PAGE_BYTES
    change((bytes) => {
      bytes.writeUInt16LE(bytes.readUInt16LE(at + 20) - 2, at + 20)
    })
    expect(structureFault(file)).toBeDefined()
  })

  it('fail the check of rows when a key has changed and is still in order', () => {
    const at = pageOf('leaf') * PAGE_BYTES
    change((bytes) => {
      const page = bytes.subarray(at, at + PAGE_BYTES)
      const last = page.readUInt16LE(22 + page.readUInt16LE(20)) + 24
      const keyEnd = last + 8 + page.readUInt16LE(last + 6)
      page[keyEnd - 1] = (page[keyEnd - 1] ?? 0) + 1
    })
    expect(structureFault(file)).toBeUndefined()
    expect(storeFault(file)).toContain('of table "agents" has a damaged row')
  })

  it('fail the check when a page in use is listed as free', () => {
    const free = [...pages()].find(([, { table }]) => table === 'free')?.[0] ?? 0
    const used = pageOf('leaf')
    change((bytes) => {
      const page = bytes.subarray(free * PAGE_BYTES, (free + 1) * PAGE_BYTES)
      // The last number of the last list, which ends at the end of the page.
      page.writeBigInt64LE(BigInt(used), lastNumber(page))
    })
    expect(structureFault(file)).toContain('used twice')
  })
})

/** The offset of the last page number of the first list in a page of the free table. */
function lastNumber(page: Buffer): number {
  const node = page.readUInt16LE(24) + 24
  const list = node + 8 + page.readUInt16LE(node + 6)
  return list + 8 * Number(page.readBigUInt64LE(list))
}

describe('opening a store', () => {
  it('is refused when its file was truncated within the used pages', async () => {
    const last = Math.max(...pages().keys())
    change((bytes) => bytes.subarray(0, last * PAGE_BYTES))
    expect(await opening()).toContain('is damaged, restore it from a backup: the file ends before byte')
  })

  it('is allowed when its file ends in free pages that were never written', async () => {
    const last = Math.max(...pages().keys())
    change((bytes) => bytes.subarray(0, (last + 1) * PAGE_BYTES))
    expect(await opening()).toBe('opened')
  })

  it.each([0, 100, PAGE_BYTES, PAGE_BYTES + 100])(
    'is refused when only %i bytes are left',
    async (length) => {
      change((bytes) => bytes.subarray(0, length))
      expect(await opening()).toContain('the file ends before byte')
    },
  )

  it('is refused when its file is missing, instead of creating an empty one', async () => {
    rmSync(file)
    expect(await opening()).toContain('the file data.mdb is missing')
  })

  it('is refused when a meta page has the wrong transaction', async () => {
    change((bytes) => {
      bytes[154] = (bytes[154] ?? 0) ^ 1
    })
    expect(await opening()).toContain('the meta pages have the transactions')
  })
})

describe('a row that has changed on disk', () => {
  it('cannot be read by its key or in a range, but other rows can', async () => {
    change((bytes) => {
      const row = Buffer.concat([Buffer.from('agent-7'), Buffer.alloc(10, 7)])
      // Free pages contain copies.
      for (let at = bytes.indexOf(row); at !== -1; at = bytes.indexOf(row, at + 1)) bytes[at + 20] = 8
    })
    const environment = openEnvironment(store, 'write')
    const { agents } = environment
    expect(() => agents.get(Buffer.from('agent-7'))).toThrow('matches its checksum')
    expect(() => [...agents.getRange()]).toThrow('matches its checksum')
    expect(() => [...agents.getKeys()]).toThrow('matches its checksum')
    expect(agents.get(Buffer.from('agent-9'))).toEqual(Buffer.alloc(100, 9))
    await environment.root.close()
  })
})
