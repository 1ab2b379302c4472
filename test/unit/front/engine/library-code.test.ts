import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { neededChanges } from '../../../../src/front/engine/library-code.js'

const folder = 'node_modules/uWebSockets.js/dist/bin'
const binaries = readdirSync(folder).filter((name) => /^uws_linux_(?:x64|arm64)_/.test(name))

/** The bytes that each processor's code has and should have. */
const expected: Record<string, [from: number, to: number][]> = {
  x64: [
    [0x7d, 0x73],
    [0x7f, 0x77],
    [0x00, 0x01],
  ],
  arm64: [[0x02, 0x06]],
}

it('finds binaries for both processors and both supported versions of Node', () => {
  const names = ['x64', 'arm64'].flatMap((arch) => [115, 127].map((abi) => `uws_linux_${arch}_${abi}.node`))
  expect(binaries).toEqual(expect.arrayContaining(names))
})

describe.each(binaries)('the code of %s', (name) => {
  const code = readFileSync(join(folder, name))
  const arch = name.split('_')[2] ?? ''
  const changes = neededChanges(code, arch) ?? []

  it('has each place that is changed exactly once', () => {
    expect(changes.map(({ at, byte }) => [code[at], byte])).toEqual(expected[arch])
  })

  it('needs no more changes once it was changed, completely or in part', () => {
    const partly = Buffer.from(code)
    for (const [index, { at, byte }] of changes.entries()) {
      partly[at] = byte
      expect(neededChanges(partly, arch)).toEqual(changes.slice(index + 1))
    }
  })

  it('is not known if a place is missing or there twice', () => {
    for (const { at } of changes) {
      const without = Buffer.from(code)
      without[at] = 0x90
      expect(neededChanges(without, arch)).toBeUndefined()
      const twice = Buffer.concat([code, code.subarray(at - 16, at + 24)])
      expect(neededChanges(twice, arch)).toBeUndefined()
    }
  })
})
