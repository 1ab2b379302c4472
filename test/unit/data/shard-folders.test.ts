import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDataDirectory, openIdleDirectory } from '../../../src/data/directory.js'
import { type Format, parseFormatOf, readFormat, writeFormat } from '../../../src/data/format.js'
import { beginBuild, recoverFolders, shardFolder, switchOver } from '../../../src/data/shard-folders.js'

let path: string

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'shard-folders-'))
})
afterEach(() => rmSync(path, { recursive: true }))

const format: Format = {
  shards: 2,
  createdAtMs: 1_700_000_000_000,
  masterSeedFingerprint: 'ab',
  layout: 0,
  switching: false,
  tokenEra: 0,
}

function createShards(below: string, shards: number, content: string): void {
  for (let shard = 0; shard < shards; shard++) {
    mkdirSync(shardFolder(below, shard))
    writeFileSync(join(shardFolder(below, shard), 'data.mdb'), `${content} ${shard}`)
  }
}

/** The text of each shard's file, by folder. */
function shardTexts(): Record<string, string> {
  const names = readdirSync(path).filter((name) => name !== 'format.json' && name !== 'lock')
  return Object.fromEntries(
    names.map((name) => {
      const file = join(path, name, 'data.mdb')
      return [name, existsSync(file) ? readFileSync(file, 'utf8') : 'no data']
    }),
  )
}

const expected = (shards: number, content: string) =>
  Object.fromEntries(Array.from({ length: shards }, (_none, n) => [`shard-${n}`, `${content} ${n}`]))

describe('a reshard', () => {
  it.each([
    [1, 3],
    [2, 3],
    [3, 1],
    [16, 2],
  ])('replaces %i shards by %i', (before, after) => {
    writeFormat(path, { ...format, shards: before })
    createShards(path, before, 'old')
    createShards(beginBuild(path), after, 'new')
    switchOver(path, { ...format, shards: before }, after)
    expect(shardTexts()).toEqual(expected(after, 'new'))
    expect(readFormat(path)).toEqual({ ...format, shards: after, layout: 1 })
  })

  it('is undone if it was interrupted before the switch', () => {
    writeFormat(path, format)
    createShards(path, 2, 'old')
    createShards(beginBuild(path), 1, 'half of new')
    expect(readFormat(path)).toEqual(format)
    expect(recoverFolders(path, format)).toEqual(format)
    expect(shardTexts()).toEqual(expected(2, 'old'))
  })

  /** The steps that replace 3 shards by 2. The reshard is interrupted after each of them. */
  const build = () => join(path, 'reshard')
  const steps: (() => void)[] = [
    () => rmSync(join(shardFolder(path, 0), 'data.mdb')),
    () => rmSync(shardFolder(path, 0), { recursive: true }),
    () => renameSync(shardFolder(build(), 0), shardFolder(path, 0)),
    () => rmSync(shardFolder(path, 1), { recursive: true }),
    () => renameSync(shardFolder(build(), 1), shardFolder(path, 1)),
    () => rmSync(join(shardFolder(path, 2), 'data.mdb')),
    () => rmSync(shardFolder(path, 2), { recursive: true }),
    () => rmSync(build(), { recursive: true }),
  ]

  it.each(Array.from({ length: steps.length + 1 }, (_none, done) => done))(
    'is completed if it was interrupted after the switch, at step %i',
    (done) => {
      const switching = { ...format, shards: 2, layout: 1, switching: true }
      createShards(path, 3, 'old')
      createShards(beginBuild(path), 2, 'new')
      writeFormat(path, switching)
      for (const step of steps.slice(0, done)) step()
      expect(readFormat(path)).toContain('strandfast reshard')
      expect(parseFormatOf(path)).toEqual(switching)
      const opening = openIdleDirectory(path)
      if (!opening.ok) throw new Error(opening.detail)
      opening.directory.close()
      expect(shardTexts()).toEqual(expected(2, 'new'))
      expect(readFormat(path)).toEqual({ ...switching, switching: false, tokenEra: 0 })
    },
  )

  it('is completed by the next start of the server', () => {
    const settings = { dataDir: path, shards: 3 }
    const random = (count: number) => Buffer.alloc(count, 7)
    const made = openDataDirectory(settings, random)
    if (!made.ok) throw new Error(made.detail)
    made.directory.close()
    createShards(path, 3, 'old')
    createShards(beginBuild(path), 2, 'new')
    const found = readFormat(path)
    if (typeof found !== 'object') throw new Error('Expected a format')
    writeFormat(path, { ...found, shards: 2, layout: 1, switching: true })
    const again = openDataDirectory({ dataDir: path }, random)
    if (!again.ok) throw new Error(again.detail)
    expect(again.directory.shards).toBe(2)
    again.directory.close()
    expect(shardTexts()).toMatchObject(expected(2, 'new'))
    expect(existsSync(build())).toBe(false)
    expect(existsSync(shardFolder(path, 2))).toBe(false)
  })
})

it('reads a format without reshard members and refuses a damaged one', () => {
  writeFormat(path, format)
  const text = readFileSync(join(path, 'format.json'), 'utf8')
  expect(JSON.parse(text)).toEqual({
    format: 2,
    shards: 2,
    created_at_ms: 1_700_000_000_000,
    master_seed_fingerprint: 'ab',
  })
  for (const damage of ['"layout": "1"', '"layout": 1.5', '"switching": 1']) {
    writeFileSync(join(path, 'format.json'), text.replace('"shards"', `${damage},\n  "shards"`))
    expect(readFormat(path)).toContain('damaged')
  }
})
