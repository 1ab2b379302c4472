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
import { setImmediate as turn } from 'node:timers/promises'
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

const made = (more: { seed?: number; bytesMax?: number; path?: string } = {}) =>
  new SealedJournal({
    path: more.path ?? path,
    masterSeed: Buffer.alloc(32, more.seed ?? 1),
    place: { purpose: 'strandfast/stream-tickets/v1', owner: Buffer.from('o') },
    random: pooledRandom(),
    bytesMax: more.bytesMax ?? 33_554_432,
    failed: (error) => failures.push(error),
  })

const kept = (more = {}) => Object.fromEntries(made(more).read())
const sourceOf = (values: Map<string, object>) => ({
  keys: () => values.keys(),
  valueOf: (key: string) => values.get(key),
})

describe('a sealed journal', () => {
  it('has for the next process what was there at the beginning, and every change since', async () => {
    const values = new Map<string, object>([['a', { n: 1 }]])
    const journal = made()
    expect(journal.read()).toEqual(new Map())
    journal.begin(sourceOf(values))
    expect(kept()).toEqual({ a: { n: 1 } })
    values.set('b', { n: 2 })
    for (const key of ['a', 'b', 'b']) journal.note(key)
    values.delete('a')
    await turn()
    expect(kept()).toEqual({ b: { n: 2 } })
    values.set('c', { n: 3 })
    journal.note('c')
    journal.close()
    values.set('d', {})
    journal.note('d')
    await turn()
    expect(kept()).toEqual({ b: { n: 2 }, c: { n: 3 } })
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('leaves out what was cut off, and opens under no other seed', async () => {
    const values = new Map<string, object>([['secret-key', { n: 1 }]])
    const journal = made()
    journal.begin(sourceOf(values))
    values.set('b', {})
    journal.note('b')
    await turn()
    const text = readFileSync(path, 'latin1')
    expect(Buffer.from(text, 'base64').includes('secret-key')).toBe(false)
    writeFileSync(path, text.slice(0, -20))
    expect(kept()).toEqual({ 'secret-key': { n: 1 } })
    appendFileSync(path, '\nnothing\n')
    expect(kept()).toEqual({ 'secret-key': { n: 1 } })
    expect(kept({ seed: 2 })).toEqual({})
    expect(kept({ bytesMax: 10 })).toEqual({})
  })

  it('is written anew before it holds much that is out of date', async () => {
    const values = new Map<string, object>([['a', { text: 'x'.repeat(100_000) }]])
    const journal = made()
    journal.begin(sourceOf(values))
    for (let n = 0; n < 30; n++) {
      journal.note('a')
      await turn()
      expect(statSync(path).size).toBeLessThan(1_700_000)
    }
    expect(kept()).toEqual(Object.fromEntries(values))
    journal.close()
  })

  it.each([
    ['there is no folder', 'ENOENT', 'missing/journal'],
    ['its place is taken', 'EISDIR', 'taken'],
  ])('is given up once where %s, and nothing else', async (_name, code, name) => {
    mkdirSync(join(directory, 'taken'))
    const journal = made({ path: join(directory, name) })
    expect(journal.read()).toEqual(new Map())
    journal.begin(sourceOf(new Map([['a', {}]])))
    journal.note('a')
    await turn()
    journal.close()
    expect(failures).toMatchObject([{ code }])
    expect(readdirSync(directory)).toEqual(['taken'])
  })
})
