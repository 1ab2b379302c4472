import { describe, expect, it } from 'vitest'
import { issueLicense, licenseStanding } from '../../../src/auth/license.js'
import { keyPairFromSeed } from '../../../src/strand/keys.js'

const seed = Buffer.alloc(32, 5)
const { publicKey } = keyPairFromSeed(seed)
const nowMs = 1_800_000_000_000
const dayMs = 86_400_000

describe('the standing of a license', () => {
  it('is valid until it expires, and then names that', async () => {
    const licenseKey = await issueLicense(seed, { licensee: 'Acme', days: 2, features: ['auth'] }, nowMs)
    expect(await licenseStanding({ licenseKey, publicKey, nowMs })).toMatchObject({
      state: 'valid',
      license: { licensee: 'Acme' },
    })
    const later = await licenseStanding({ licenseKey, publicKey, nowMs: nowMs + 3 * dayMs })
    expect(later).toMatchObject({ state: 'expired', detail: expect.stringContaining('has expired') })
  })

  it('says of a missing key, a missing authority and a wrong key what to do', async () => {
    const said = async (licenseKey?: string, key?: string) => {
      const standing = await licenseStanding({ licenseKey, publicKey: key, nowMs })
      return standing.state === 'valid' ? [] : [standing.state, standing.detail]
    }
    expect(await said(undefined, publicKey)).toEqual(['absent', expect.stringMatching(/is not set/)])
    expect(await said('a.b.c')).toEqual(['absent', expect.stringMatching(/set SERVICE_LICENSE_PUBLIC_KEY/)])
    expect(await said('junk', publicKey)).toEqual(['invalid', expect.stringMatching(/is not a license/)])
    expect(await said('a.b.c', publicKey)).toEqual([
      'invalid',
      expect.stringMatching(`was not issued by the license authority ${publicKey}`),
    ])
  })
})
