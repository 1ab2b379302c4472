import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { auth, authKey } from '../../workers/store/tables/auth-table.js'
import type { LinkPurpose } from '../../src/protocol/auth-messages.js'
import { AuthShard, codeOf } from '../support/shard/auth-shard.js'
import { testAuthRules } from '../support/shard/shard.js'

/* Requests for mails to the mailbox of another user must not harm that user's links and mails. */

let shard: AuthShard

beforeEach(() => {
  shard = new AuthShard()
})
afterEach(() => shard.remove())

const email = 'ada@example.com'
const purposes: LinkPurpose[] = ['magicLink', 'verifyEmail', 'passwordReset']

describe('links of one e-mail', () => {
  it.each(purposes)('outlive any number of links for another purpose: %s', (purpose) => {
    shard.register(email)
    const owned = shard.sendLink({ purpose, email, mailed: false })
    for (const other of purposes.filter((one) => one !== purpose)) {
      for (let n = 0; n < 40; n++) shard.sendLink({ purpose: other, email, mailed: false })
    }
    expect(shard.isUsable(purpose, owned)).toBe(true)
  })

  it.each(purposes)('are bounded for one purpose, and a new link replaces the oldest: %s', (purpose) => {
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

describe('mails to one mailbox', () => {
  const { mailsPerKindMax, mailsPerKindEveryMs } = limits
  const requestLinks = (purpose: LinkPurpose, count = 40) =>
    Array.from({ length: count }, () => shard.sendLink({ purpose, email }))
  const kinds = () => shard.mails().map(({ kind }) => kind)
  const countOf = (kind: string) => kinds().filter((one) => one === kind).length

  it.each(purposes)('are few, however many are requested at the same time: %s', (purpose) => {
    shard.register(email)
    requestLinks(purpose)
    expect(countOf(purpose)).toBe(mailsPerKindMax)
  })

  it.each(purposes)('cost as much once the quota is used up, with an account or without: %s', (purpose) => {
    shard.register(email)
    const rowKinds = ['link', 'email-link', 'unsent-mail', 'decoy', 'mail-room'] as const
    const rows = () => rowKinds.map((kind) => shard.store.tables.of(auth).countSome(authKey('', kind, '')))
    const added = (to: string) => {
      const before = rows()
      shard.sendLink({ purpose, email: to })
      return rows().map((count, at) => count - (before[at] ?? 0))
    }
    requestLinks(purpose, mailsPerKindMax)
    // The first mail creates the rows that later mails change.
    for (const to of [email, 'unknown@example.com']) added(to)
    expect(countOf(purpose)).toBeGreaterThanOrEqual(mailsPerKindMax)
    const [known, unknown] = [added(email), added('unknown@example.com')]
    if (purpose !== 'magicLink') expect(known).toEqual(unknown)
    expect(known).toEqual([1, 1, 1, 0, 0])
  })

  it.each(purposes)('do not use up the quota of other kinds: %s', (purpose) => {
    shard.register(email)
    for (const other of purposes.filter((one) => one !== purpose)) requestLinks(other, 10)
    shard.sendLink({ purpose, email })
    expect(countOf(purpose)).toBe(1)
  })

  it('get the same answer when the quota is used up', () => {
    const answers = Array.from({ length: 10 }, (_none, n) => {
      const link = {
        purpose: 'magicLink',
        hash: String(n).repeat(64),
        expiresAtMs: shard.nowMs + 900_000,
      } as const
      return shard.change({ kind: 'linkSend', email, link: { ...link, mailToken: 'x' } })
    })
    expect(answers.every(({ kind }) => kind === 'done')).toBe(true)
  })

  it('are limited to ten an hour by a quota that refills gradually, so that the owner always has a usable link', () => {
    shard.register(email)
    const hourEndsAtMs = shard.nowMs + 3_600_000
    const owned: string[] = []
    while (shard.nowMs < hourEndsAtMs) {
      owned.push(...requestLinks('magicLink', 5))
      expect(owned.some((hash) => shard.isUsable('magicLink', hash))).toBe(true)
      shard.nowMs += mailsPerKindEveryMs / 4
    }
    expect(countOf('magicLink')).toBeLessThanOrEqual(10)
    expect(countOf('magicLink')).toBeGreaterThan(mailsPerKindMax)
  })

  it('contain links that stay usable, whatever is requested afterwards', () => {
    shard.register(email)
    const [first = ''] = requestLinks('passwordReset', 1)
    requestLinks('passwordReset')
    expect(shard.isUsable('passwordReset', first)).toBe(true)
  })

  it('are counted separately for each mailbox and each namespace', () => {
    requestLinks('magicLink')
    shard.sendLink({ purpose: 'magicLink', email: 'bob@example.com' })
    shard.sendLink({ purpose: 'magicLink', email }, 'acme')
    expect(countOf('magicLink')).toBe(mailsPerKindMax + 2)
  })

  it('are not counted if they are requested before there is an account that could use them', () => {
    for (const purpose of ['verifyEmail', 'passwordReset'] as const) requestLinks(purpose)
    expect(kinds()).toEqual([])
    shard.register(email)
    for (const purpose of ['verifyEmail', 'passwordReset'] as const) requestLinks(purpose, 1)
    expect(kinds().toSorted()).toEqual(['passwordReset', 'verifyEmail'])
  })

  it('are bounded over a restart', async () => {
    requestLinks('magicLink')
    await shard.reopen()
    requestLinks('magicLink')
    expect(countOf('magicLink')).toBe(mailsPerKindMax)
  })
})

it('mails the owner of an address only a few times about attempts to register with it', async () => {
  shard.register(email)
  const passwordHash = 'x'
  shard.auth = { ...testAuthRules, requireEmailVerify: true }
  await shard.reopen()
  for (let n = 0; n < 20; n++) {
    const verifyLink = {
      purpose: 'verifyEmail',
      hash: 'a'.repeat(64),
      expiresAtMs: shard.nowMs + 1_000,
    } as const
    const link = { ...verifyLink, mailToken: 'x' }
    expect(codeOf(shard.change({ kind: 'register', email, passwordHash, verifyLink: link }))).toBe(
      'registered',
    )
  }
  expect(shard.mails().map(({ kind }) => kind)).toEqual(
    Array(limits.mailsPerKindMax).fill('registrationTried'),
  )
})
