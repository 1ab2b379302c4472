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
import { beginBuild, settleFolders, shardFolder, switchOver } from '../../../src/data/shard-folders.js'

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
  hasLog: true,
}

function makeShards(below: string, shards: number, content: string): void {
  for (let shard = 0; shard < shards; shard++) {
    mkdirSync(shardFolder(below, shard))
    writeFileSync(join(shardFolder(below, shard), 'data.mdb'), `${content} ${shard}`)
  }
}

/** What the directory holds: the text of each shard's file, by the shard's folder. */
function shardsThere(): Record<string, string> {
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

describe('putting other shards in force', () => {
  it.each([
    [1, 3],
    [2, 3],
    [3, 1],
    [16, 2],
  ])('replaces %i by %i', (before, after) => {
    writeFormat(path, { ...format, shards: before })
    makeShards(path, before, 'old')
    makeShards(beginBuild(path), after, 'new')
    switchOver(path, { ...format, shards: before }, after)
    expect(shardsThere()).toEqual(expected(after, 'new'))
    expect(readFormat(path)).toEqual({ ...format, shards: after, layout: 1 })
  })

  it('is undone where it was cut off before', () => {
    writeFormat(path, format)
    makeShards(path, 2, 'old')
    makeShards(beginBuild(path), 1, 'half of new')
    expect(readFormat(path)).toEqual(format)
    expect(settleFolders(path, format)).toEqual(format)
    expect(shardsThere()).toEqual(expected(2, 'old'))
  })

  /** What is done to put 2 shards in the place of 3, each cut off behind any of it. */
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
    'is completed where it was cut off after, behind step %i',
    (done) => {
      const switching = { ...format, shards: 2, layout: 1, switching: true }
      makeShards(path, 3, 'old')
      makeShards(beginBuild(path), 2, 'new')
      writeFormat(path, switching)
      for (const step of steps.slice(0, done)) step()
      expect(readFormat(path)).toContain('strandfast reshard')
      expect(parseFormatOf(path)).toEqual(switching)
      const opening = openIdleDirectory(path)
      if (!opening.ok) throw new Error(opening.detail)
      opening.directory.close()
      expect(shardsThere()).toEqual(expected(2, 'new'))
      expect(readFormat(path)).toEqual({ ...switching, switching: false, tokenEra: 0 })
    },
  )

  it('is completed by the start of a server, which then has the new number of shards', () => {
    const settings = { dataDir: path, shards: 3 }
    const random = (count: number) => Buffer.alloc(count, 7)
    const made = openDataDirectory(settings, random)
    if (!made.ok) throw new Error(made.detail)
    made.directory.close()
    makeShards(path, 3, 'old')
    makeShards(beginBuild(path), 2, 'new')
    const found = readFormat(path)
    if (typeof found !== 'object') throw new Error('Expected a format')
    writeFormat(path, { ...found, shards: 2, layout: 1, switching: true })
    const again = openDataDirectory({ dataDir: path }, random)
    if (!again.ok) throw new Error(again.detail)
    expect(again.directory.shards).toBe(2)
    again.directory.close()
    expect(shardsThere()).toMatchObject(expected(2, 'new'))
    expect(existsSync(build())).toBe(false)
    expect(existsSync(shardFolder(path, 2))).toBe(false)
  })
})

it('reads a format that was written before directories could be moved, and refuses a damaged one', () => {
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
