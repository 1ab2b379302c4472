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
  const notRunning = { fault: `No server runs with the data directory ${dataDir}` }
  expect(findServer(dataDir)).toEqual(notRunning)
  noteAddress(dataDir, 'http://127.0.0.1:1')
  expect(findServer(dataDir)).toEqual(notRunning)
  const locking = lockDirectory(dataDir)
  const notReady = { fault: `The server of the data directory ${dataDir} does not accept requests yet` }
  expect(findServer(dataDir)).toEqual(notReady)
  expect(existsSync(join(dataDir, 'address'))).toBe(false)
  noteAddress(dataDir, 'http://127.0.0.1:2')
  expect(findServer(dataDir)).toEqual({ url: 'http://127.0.0.1:2' })
  expect(lockDirectory(dataDir)).toMatchObject({ ok: false })
  expect(findServer(dataDir)).toEqual({ url: 'http://127.0.0.1:2' })
  if (locking.ok) locking.release()
  expect(findServer(dataDir)).toEqual(notRunning)
  dropAddress(dataDir)
  expect(existsSync(join(dataDir, 'address'))).toBe(false)
})

it('says if there is no data directory', () => {
  const missing = join(dataDir, 'missing')
  expect(findServer(missing)).toEqual({ fault: `There is no data directory ${missing}` })
})
