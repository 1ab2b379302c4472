import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { endedIncarnation, noteIncarnation } from '../../../src/data/last-start.js'

describe('the last start on the directory of a node', () => {
  let folder: string
  let path: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'strandfast-last-start-'))
    path = join(folder, 'data')
    mkdirSync(path)
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('has ended if the same node starts on the same directory', () => {
    expect(endedIncarnation(path, 'a')).toBeUndefined()
    noteIncarnation(path, { node: 'a', incarnation: 3 })
    expect(endedIncarnation(path, 'a')).toBe(3)
    expect(endedIncarnation(path, 'b')).toBeUndefined()
  })

  it('may still run if the directory was copied to this or another machine', () => {
    noteIncarnation(path, { node: 'a', incarnation: 3 })
    const copy = join(folder, 'copy')
    cpSync(path, copy, { recursive: true })
    expect(endedIncarnation(copy, 'a')).toBeUndefined()
    noteIncarnation(path, { node: 'a', incarnation: 4 }, 'here')
    expect(endedIncarnation(path, 'a', 'here')).toBe(4)
    expect(endedIncarnation(path, 'a', 'there')).toBeUndefined()
  })

  it('may still run if the boot id is unknown or an earlier version wrote the file', () => {
    writeFileSync(join(path, 'node.incarnation'), 'a 3 unknown\n')
    expect(endedIncarnation(path, 'a')).toBeUndefined()
    writeFileSync(join(path, 'node.incarnation'), 'a 3\n')
    expect(endedIncarnation(path, 'a')).toBeUndefined()
  })
})
