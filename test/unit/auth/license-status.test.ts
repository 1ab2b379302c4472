import { describe, expect, it } from 'vitest'
import { issueLicense, licenseStatus } from '../../../src/auth/license.js'
import { keyPairFromSeed } from '../../../src/strand/keys.js'

const seed = Buffer.alloc(32, 5)
const { publicKey } = keyPairFromSeed(seed)
const nowMs = 1_800_000_000_000
const dayMs = 86_400_000

describe('the status of a license', () => {
  it('is valid until the license expires, and then expired', async () => {
    const licenseKey = await issueLicense(seed, { licensee: 'Acme', days: 2, features: ['auth'] }, nowMs)
    expect(await licenseStatus({ licenseKey, publicKey, nowMs })).toMatchObject({
      state: 'valid',
      license: { licensee: 'Acme' },
    })
    const later = await licenseStatus({ licenseKey, publicKey, nowMs: nowMs + 3 * dayMs })
    expect(later).toMatchObject({ state: 'expired', detail: expect.stringContaining('has expired') })
  })

  it('describes what to do about a missing key, a missing authority and a wrong key', async () => {
    const detailOf = async (licenseKey?: string, key?: string) => {
      const status = await licenseStatus({ licenseKey, publicKey: key, nowMs })
      return status.state === 'valid' ? [] : [status.state, status.detail]
    }
    expect(await detailOf(undefined, publicKey)).toEqual(['absent', expect.stringMatching(/is not set/)])
    expect(await detailOf('a.b.c')).toEqual([
      'absent',
      expect.stringMatching(/set SERVICE_LICENSE_PUBLIC_KEY/),
    ])
    expect(await detailOf('junk', publicKey)).toEqual(['invalid', expect.stringMatching(/is not a license/)])
    expect(await detailOf('a.b.c', publicKey)).toEqual([
      'invalid',
      expect.stringMatching(`was not issued by the license authority ${publicKey}`),
    ])
  })
})
