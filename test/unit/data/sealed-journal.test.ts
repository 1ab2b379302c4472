import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTick } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pooledRandom } from '../../../src/base/random.js'
import { SealedJournal } from '../../../src/data/sealed-journal.js'

let directory = ''
let path = ''
let failures: Error[] = []

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-journal-'))
  path = join(directory, 'journal')
  failures = []
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const newJournal = (more: { seed?: number; bytesMax?: number; path?: string } = {}) =>
  new SealedJournal({
    path: more.path ?? path,
    masterSeed: Buffer.alloc(32, more.seed ?? 1),
    context: { purpose: 'strandfast/stream-tickets/v1', boundTo: Buffer.from('o') },
    random: pooledRandom(),
    bytesMax: more.bytesMax ?? 33_554_432,
    failed: (error) => failures.push(error),
  })

const storedValues = (more = {}) => Object.fromEntries(newJournal(more).read())
const sourceOf = (values: Map<string, object>) => ({
  keys: () => values.keys(),
  valueOf: (key: string) => values.get(key),
})

describe('a sealed journal', () => {
  it('returns the initial values and all later changes to the next process', async () => {
    const values = new Map<string, object>([['a', { n: 1 }]])
    const journal = newJournal()
    expect(journal.read()).toEqual(new Map())
    journal.begin(sourceOf(values))
    expect(storedValues()).toEqual({ a: { n: 1 } })
    values.set('b', { n: 2 })
    for (const key of ['a', 'b', 'b']) journal.note(key)
    values.delete('a')
    await nextTick()
    expect(storedValues()).toEqual({ b: { n: 2 } })
    values.set('c', { n: 3 })
    journal.note('c')
    journal.close()
    values.set('d', {})
    journal.note('d')
    await nextTick()
    expect(storedValues()).toEqual({ b: { n: 2 }, c: { n: 3 } })
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('skips truncated lines and cannot be opened with another seed', async () => {
    const values = new Map<string, object>([['secret-key', { n: 1 }]])
    const journal = newJournal()
    journal.begin(sourceOf(values))
    values.set('b', {})
    journal.note('b')
    await nextTick()
    const text = readFileSync(path, 'latin1')
    expect(Buffer.from(text, 'base64').includes('secret-key')).toBe(false)
    writeFileSync(path, text.slice(0, -20))
    expect(storedValues()).toEqual({ 'secret-key': { n: 1 } })
    appendFileSync(path, '\nnothing\n')
    expect(storedValues()).toEqual({ 'secret-key': { n: 1 } })
    expect(storedValues({ seed: 2 })).toEqual({})
    expect(storedValues({ bytesMax: 10 })).toEqual({})
  })

  it('is rewritten before it contains many outdated values', async () => {
    const values = new Map<string, object>([['a', { text: 'x'.repeat(100_000) }]])
    const journal = newJournal()
    journal.begin(sourceOf(values))
    for (let n = 0; n < 30; n++) {
      journal.note('a')
      await nextTick()
      expect(statSync(path).size).toBeLessThan(1_700_000)
    }
    expect(storedValues()).toEqual(Object.fromEntries(values))
    journal.close()
  })

  it.each([
    ['the folder does not exist', 'ENOENT', 'missing/journal'],
    ['the path is a folder', 'EISDIR', 'taken'],
  ])('reports one failure and leaves no file if %s', async (_name, code, name) => {
    mkdirSync(join(directory, 'taken'))
    const journal = newJournal({ path: join(directory, name) })
    expect(journal.read()).toEqual(new Map())
    journal.begin(sourceOf(new Map([['a', {}]])))
    journal.note('a')
    await nextTick()
    journal.close()
    expect(failures).toMatchObject([{ code }])
    expect(readdirSync(directory)).toEqual(['taken'])
  })
})
