import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { copyFile, readSmall } from '../../../../src/data/backup/digested-file.js'

let folder: string
const reading = { signal: new AbortController().signal, onBytes: () => undefined }

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'digested-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('an untrusted file', () => {
  it('is copied up to one byte beyond its limit', async () => {
    const from = join(folder, 'grown')
    writeFileSync(from, 'x'.repeat(3_000_000))
    for (const bytesMax of [0, 10, 2_999_999]) {
      const to = join(folder, `copy-${bytesMax}`)
      expect((await copyFile(from, to, { ...reading, bytesMax })).bytes).toBe(bytesMax + 1)
      expect(statSync(to).size).toBe(bytesMax + 1)
    }
  })

  it('is not copied or read if it is a device or a link', async () => {
    const strict = { ...reading, bytesMax: 10 }
    await expect(copyFile('/dev/zero', join(folder, 'zeros'), strict)).rejects.toThrow('a regular file')
    writeFileSync(join(folder, 'there'), 'x')
    symlinkSync(join(folder, 'there'), join(folder, 'link'))
    await expect(copyFile(join(folder, 'link'), join(folder, 'copy'), strict)).rejects.toThrow('ELOOP')
    expect(readSmall('/dev/zero', 10)).toBeUndefined()
    expect(() => readSmall(join(folder, 'link'), 10)).toThrow('ELOOP')
  })

  it('is read completely up to its limit', () => {
    const file = join(folder, 'small')
    writeFileSync(file, '0123456789')
    expect(readSmall(file, 10)?.toString()).toBe('0123456789')
    expect(readSmall(file, 9)).toBeUndefined()
  })
})
