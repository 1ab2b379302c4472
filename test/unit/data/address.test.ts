import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { dropAddress, findServer, noteAddress } from '../../../src/data/address.js'
import { lockDirectory } from '../../../src/data/lock.js'

let dataDir: string

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'strandfast-address-'))
})

afterEach(() => rmSync(dataDir, { recursive: true }))

it('removes the address of a killed server when the lock is taken', () => {
  noteAddress(dataDir, 'http://127.0.0.1:1')
  const locking = lockDirectory(dataDir)
  expect(findServer(dataDir)).toEqual({})
  expect(existsSync(join(dataDir, 'address'))).toBe(false)
  noteAddress(dataDir, 'http://127.0.0.1:2')
  expect(findServer(dataDir)).toEqual({ url: 'http://127.0.0.1:2' })
  expect(lockDirectory(dataDir)).toMatchObject({ ok: false })
  expect(findServer(dataDir)).toEqual({ url: 'http://127.0.0.1:2' })
  if (locking.ok) locking.release()
  expect(findServer(dataDir)).toEqual({})
  dropAddress(dataDir)
  expect(existsSync(join(dataDir, 'address'))).toBe(false)
})
