import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { placeLogs, removeStore } from '../../../src/data/log-folders.js'

let folder: string
let dataDir: string
let logDir: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'log-folders-')))
  dataDir = join(folder, 'data')
  logDir = join(folder, 'logs')
  for (const store of stores()) {
    mkdirSync(join(store, 'log'), { recursive: true })
    writeFileSync(join(store, 'log/1.log'), `log of ${store}`)
  }
})
afterEach(() => rmSync(folder, { recursive: true }))

const stores = (of = dataDir) => ['shard-0', 'shard-1'].map((name) => join(of, name))
const placeAll = (to: string | undefined, of = dataDir) => placeLogs(of, stores(of), to)
const textOf = (store: string) => readFileSync(join(store, 'log/1.log'), 'utf8')
const isLink = (path: string) => lstatSync(path).isSymbolicLink()

/** Expects every log to be complete in this location and nowhere else. */
function expectLogs(location: 'beside' | string): void {
  for (const [shard, store] of stores().entries()) {
    expect(textOf(store)).toContain(`shard-${shard}`)
    expect(readdirSync(store)).toEqual(['log'])
    expect(isLink(join(store, 'log'))).toBe(location !== 'beside')
    if (location !== 'beside') expect(realpathSync(join(store, 'log'))).toBe(join(location, `shard-${shard}`))
  }
  const others = [logDir, `${logDir}-2`].filter((one) => one !== location && existsSync(one))
  expect(others.flatMap((one) => readdirSync(one).filter((name) => name !== 'owner'))).toEqual([])
}

describe('logs', () => {
  it('are beside their stores by default', () => {
    expect(placeAll(undefined)).toBeUndefined()
    expectLogs('beside')
  })

  it('move to another folder, to a second one and back', () => {
    for (const to of [logDir, logDir, `${logDir}-2`, undefined, logDir]) {
      expect(placeAll(to)).toBeUndefined()
      expectLogs(to ?? 'beside')
    }
  })

  it('stay in place if the same folder is set by another path', () => {
    placeAll(logDir)
    symlinkSync(logDir, join(folder, 'same'))
    expect(placeAll(join(folder, 'same'))).toBeUndefined()
    expectLogs(logDir)
  })

  it('stay with a data directory that was moved', () => {
    placeAll(logDir)
    const moved = join(folder, 'moved')
    renameSync(dataDir, moved)
    expect(placeAll(logDir, moved)).toBeUndefined()
    expect(readFileSync(join(logDir, 'owner'), 'utf8')).toBe(`${moved}\n`)
    expect(textOf(join(moved, 'shard-1'))).toContain('shard-1')
  })

  it('are created for the placeholder of a store', () => {
    const placeholder = join(dataDir, 'shard-2.tmp')
    mkdirSync(placeholder)
    expect(placeLogs(dataDir, [...stores(), placeholder], logDir)).toBeUndefined()
    expect(realpathSync(join(placeholder, 'log'))).toBe(join(logDir, 'shard-2'))
  })

  it('are removed with their store', () => {
    placeAll(logDir)
    removeStore(join(dataDir, 'shard-1'))
    expect(readdirSync(logDir)).toEqual(['owner', 'shard-0'])
    expect(readdirSync(dataDir)).toEqual(['shard-0'])
  })

  // The states between two steps of a move.
  it.each<[from: string, cutOff: (store: string) => void]>([
    ['the old folder was set aside', (store) => renameSync(join(store, 'log'), join(store, 'log.moving'))],
    [
      'the old folder was not removed',
      (store) => {
        mkdirSync(join(store, 'log.moving'))
        writeFileSync(join(store, 'log.moving/1.log'), 'old')
      },
    ],
    [
      'the copy was not complete',
      (store) => {
        mkdirSync(join(logDir, 'shard-0'), { recursive: true })
        writeFileSync(join(logDir, 'shard-0/1.log'), 'a part')
        writeFileSync(join(logDir, 'owner'), `${dataDir}\n`)
        symlinkSync(join(logDir, 'shard-0'), join(store, 'log.tmp'))
      },
    ],
  ])('are complete after a move that was interrupted when %s', (_when, cutOff) => {
    cutOff(join(dataDir, 'shard-0'))
    expect(placeAll(logDir)).toBeUndefined()
    expectLogs(logDir)
  })
})

describe('logs that come back', () => {
  it.each<[when: string, cutOff: (store: string) => void]>([
    [
      'the copy was complete',
      (store) => cpSync(realpathSync(join(store, 'log')), join(store, 'log.moving'), { recursive: true }),
    ],
    [
      'the link was removed',
      (store) => {
        cpSync(realpathSync(join(store, 'log')), join(store, 'log.moving'), { recursive: true })
        rmSync(join(store, 'log'))
      },
    ],
  ])('are complete after a move that was interrupted when %s', (_when, cutOff) => {
    placeAll(logDir)
    cutOff(join(dataDir, 'shard-0'))
    expect(placeAll(undefined)).toBeUndefined()
    for (const store of stores())
      expect([textOf(store), readdirSync(store)]).toEqual([`log of ${store}`, ['log']])
    expect(placeAll(logDir)).toBeUndefined()
    expectLogs(logDir)
  })
})

describe('a folder for logs', () => {
  it('is refused when it contains other files', () => {
    mkdirSync(logDir)
    writeFileSync(join(logDir, 'photo.jpg'), '')
    expect(placeAll(logDir)).toContain('contains photo.jpg')
    expect(placeAll(dataDir)).toContain('contains shard-0')
    for (const store of stores()) expect(isLink(join(store, 'log'))).toBe(false)
  })

  it('is refused when it contains the logs of another data directory or its copy', () => {
    placeAll(logDir)
    writeFileSync(join(dataDir, 'address'), '')
    const other = join(folder, 'other')
    for (const [shard, store] of stores(other).entries()) {
      mkdirSync(store, { recursive: true })
      symlinkSync(join(logDir, `shard-${shard}`), join(store, 'log'))
    }
    expect(placeAll(logDir, other)).toContain(`contains the logs of the data directory ${dataDir}`)
    expectLogs(logDir)
  })

  it('is refused when other users can write to it', () => {
    mkdirSync(logDir)
    chmodSync(logDir, 0o722)
    expect(placeAll(logDir)).toContain(`chmod go-w ${logDir}`)
    for (const store of stores()) expect(isLink(join(store, 'log'))).toBe(false)
  })

  it('is refused while it is missing, if a log was moved there', () => {
    placeAll(logDir)
    renameSync(logDir, `${logDir}-away`)
    expect(placeAll(logDir)).toContain('mount its disk')
    expect(existsSync(logDir)).toBe(false)
    renameSync(`${logDir}-away`, logDir)
    expect(placeAll(logDir)).toBeUndefined()
    expectLogs(logDir)
  })
})
