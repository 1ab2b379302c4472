import { expect, it } from 'vitest'
import { isLoopback } from '../../../src/base/loopback.js'

it.each(['localhost', '127.0.0.1', '127.3.2.1', '::1', '[::1]', '::ffff:127.0.0.1'])('knows %s', (host) => {
  expect(isLoopback(host)).toBe(true)
})

it.each([
  '',
  '0.0.0.0',
  '::',
  '[::]',
  '10.0.0.1',
  '128.0.0.1',
  '::2',
  '::ffff:10.0.0.1',
  'localhost.example',
])('does not take "%s" for this machine', (host) => expect(isLoopback(host)).toBe(false))
