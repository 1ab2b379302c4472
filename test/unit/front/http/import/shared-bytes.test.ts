import { expect, it } from 'vitest'
import { bodyBytes } from '../../../../../src/front/limits/bounds.js'
import { Quota } from '../../../../../src/base/quota.js'
import { SharedBytes } from '../../../../../src/front/http/import/session.js'
import { OpenTransfers } from '../../../../../src/front/limits/transfers.js'
import type { Principal } from '../../../../../src/front/routes/route.js'

const principal: Principal = { id: 'key', scopes: new Set(), agents: [] }
const bodyMemory = () =>
  new OpenTransfers(new Quota(bodyBytes)).begin({ principal, holder: principal.id }, () => {})

const textOf = ({ parts }: SharedBytes) => Buffer.concat(parts).toString()

it('stores bytes in order in shared memory, and removes the first ones', () => {
  const bytes = new SharedBytes(bodyMemory())
  for (const text of ['ab', '', 'cde', 'f']) bytes.add(Buffer.from(text))
  expect([textOf(bytes), bytes.length]).toEqual(['abcdef', 6])
  for (const part of bytes.parts) expect(part.buffer).toBeInstanceOf(SharedArrayBuffer)
  bytes.drop(0)
  bytes.drop(1)
  expect([textOf(bytes), bytes.length]).toEqual(['bcdef', 5])
  bytes.drop(3)
  expect([textOf(bytes), bytes.length]).toEqual(['ef', 2])
  bytes.drop(2)
  bytes.add(Buffer.from('g'))
  expect([textOf(bytes), bytes.length]).toEqual(['g', 1])
})

it('stores a copy', () => {
  const bytes = new SharedBytes(bodyMemory())
  const source = Buffer.from('a')
  bytes.add(source)
  source[0] = 0x62
  expect(textOf(bytes)).toBe('a')
})
