import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { neededChanges } from '../../../../src/front/engine/header-bytes.js'

const folder = 'node_modules/uWebSockets.js/dist/bin'
const binaries = readdirSync(folder).filter((name) => name.startsWith('uws_linux_x64_'))

it('finds binaries for both supported versions of Node', () => {
  expect(binaries).toEqual(expect.arrayContaining(['uws_linux_x64_115.node', 'uws_linux_x64_127.node']))
})

describe.each(binaries)('the code of %s', (name) => {
  const code = readFileSync(join(folder, name))
  const changes = neededChanges(code) ?? []

  it('has two signed jumps, one for each end of a value', () => {
    expect(changes.map(({ at, byte }) => [code[at], byte])).toEqual([
      [0x7d, 0x73],
      [0x7f, 0x77],
    ])
  })

  it('needs no more changes once it was changed, completely or in part', () => {
    const partly = Buffer.from(code)
    for (const [index, { at, byte }] of changes.entries()) {
      partly[at] = byte
      expect(neededChanges(partly)).toEqual(changes.slice(index + 1))
    }
  })

  it('is not known if a loop is missing or there twice', () => {
    const [first, second] = changes.map(({ at }) => at)
    const without = Buffer.from(code)
    without[second ?? 0] = 0x90
    expect(neededChanges(without)).toBeUndefined()
    const twice = Buffer.concat([code, code.subarray((first ?? 0) - 8, (first ?? 0) + 24)])
    expect(neededChanges(twice)).toBeUndefined()
  })
})
