import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits.js'
import type { LinkPurpose } from '../../src/protocol/auth-messages.js'
import { AuthShard } from '../support/auth-shard.js'

/* What anyone can do to the mailbox and the links of somebody else by asking for mails there. */

let shard: AuthShard

beforeEach(() => {
  shard = new AuthShard()
})
afterEach(() => shard.remove())

const email = 'ada@example.com'
const purposes: LinkPurpose[] = ['magicLink', 'verifyEmail', 'passwordReset']

describe('links of one e-mail', () => {
  it.each(purposes)('outlive any number of others for another purpose: %s', (purpose) => {
    shard.register(email)
    const owned = shard.sendLink({ purpose, email, mailed: false })
    for (const other of purposes.filter((one) => one !== purpose)) {
      for (let n = 0; n < 40; n++) shard.sendLink({ purpose: other, email, mailed: false })
    }
    expect(shard.isUsable(purpose, owned)).toBe(true)
  })

  it.each(purposes)('are bounded for one purpose, of which the oldest goes: %s', (purpose) => {
    shard.register(email)
    const hashes: string[] = []
    for (let n = 0; n <= limits.linksPerPurposeMax; n++) {
      hashes.push(shard.sendLink({ purpose, email, mailed: false }))
      shard.nowMs += 1
    }
    expect(hashes.map((hash) => shard.isUsable(purpose, hash))).toEqual([
      false,
      ...Array(limits.linksPerPurposeMax).fill(true),
    ])
  })
})
