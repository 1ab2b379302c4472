import { generateKeyPairSync } from 'node:crypto'
import { verifyAuthenticationResponse, verifyRegistrationResponse } from '@simplewebauthn/server'
import { describe, expect, it } from 'vitest'
import type { PasskeyRow } from '../../../src/auth/passkey.js'
import { PasskeyCeremony } from '../../../src/auth/passkey-ceremony.js'
import { cborMap } from '../../support/auth/cbor.js'
import { type Deviation, SoftAuthenticator } from '../../support/auth/authenticator.js'

const place = { rpId: 'example.org', origin: 'https://example.org' }
const ceremony = new PasskeyCeremony({ rpId: place.rpId, origins: [place.origin], name: 'Test' })
const challenge = Buffer.alloc(32, 1).toString('base64url')
const userId = 'usr_0123456789abcdef0123456789abcdef'
const user = { userId, email: 'ada@example.org' }

/** Registers a passkey. */
async function registered(deviation: Deviation = {}) {
  const authenticator = new SoftAuthenticator(place)
  const options = await ceremony.creationOptions(challenge, user, [])
  const passkey = await ceremony.verifyRegistration(authenticator.register(options, deviation), challenge)
  if (passkey === undefined) throw new Error('Expected a passkey')
  return { authenticator, passkey: { ...passkey, userId, createdAtMs: 0 } }
}

describe('the options', () => {
  it('require a discoverable passkey, a verified user and no attestation', async () => {
    const existing = [{ id: 'AAAA', transports: ['usb'] }]
    const options = await ceremony.creationOptions(challenge, user, existing)
    expect(options).toMatchObject({
      challenge,
      rp: { id: 'example.org', name: 'Test' },
      user: { id: Buffer.from(userId).toString('base64url'), name: user.email },
      attestation: 'none',
      timeout: 300_000,
      excludeCredentials: [{ type: 'public-key', id: 'AAAA', transports: ['usb'] }],
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    })
    expect(options.pubKeyCredParams.map(({ alg }) => alg)).toEqual([-8, -7, -257])
  })

  it('contain credential ids without transports, or no ids', async () => {
    expect(await ceremony.requestOptions(challenge, ['AAAA'])).toMatchObject({
      challenge,
      rpId: 'example.org',
      userVerification: 'required',
      allowCredentials: [{ type: 'public-key', id: 'AAAA' }],
    })
    const open: object = JSON.parse(JSON.stringify(await ceremony.requestOptions(challenge, undefined)))
    expect(open).not.toHaveProperty('allowCredentials')
  })
})

const deviations: [name: string, deviation: Deviation][] = [
  ['another origin', { origin: 'https://example.org.evil.test' }],
  ['another port', { origin: 'https://example.org:8443' }],
  ['plain http', { origin: 'http://example.org' }],
  ['another domain of the authenticator', { rpId: 'evil.test' }],
  ['a user who was not verified', { userVerified: false }],
  ['a user who was not present', { userPresent: false }],
  ['another challenge', { challenge: Buffer.alloc(32, 2).toString('base64url') }],
  ['a frame of another site', { crossOrigin: true }],
]

describe('a registration', () => {
  it('creates a passkey', async () => {
    const { authenticator, passkey } = await registered()
    expect(passkey).toMatchObject({
      id: authenticator.id,
      counter: 0,
      backupEligible: false,
      transports: ['internal'],
    })
    expect((await registered({ backupEligible: true })).passkey.backupEligible).toBe(true)
  })

  it.each([...deviations, ['an assertion', { type: 'webauthn.get' }] as const])(
    'creates no passkey for %s',
    async (_name, deviation) => {
      const authenticator = new SoftAuthenticator(place)
      const options = await ceremony.creationOptions(challenge, user, [])
      const sent = authenticator.register(options, deviation)
      expect(await ceremony.verifyRegistration(sent, challenge)).toBeUndefined()
    },
  )

  it('ignores the attestation, whose certificates could contain addresses to fetch', async () => {
    const authenticator = new SoftAuthenticator(place)
    const options = await ceremony.creationOptions(challenge, user, [])
    const attStmt = cborMap([
      ['alg', -7],
      ['sig', Buffer.alloc(70, 1)],
    ])
    for (const fmt of ['packed', 'apple', 'android-safetynet', 'unknown']) {
      const sent = authenticator.register(options, {}, { fmt, attStmt })
      expect(await ceremony.verifyRegistration(sent, challenge)).toMatchObject({ id: authenticator.id })
    }
  })

  it('creates no passkey with an id that is too long, missing, or not that of the authenticator', async () => {
    const options = await ceremony.creationOptions(challenge, user, [])
    const register = (bytes: Buffer) => new SoftAuthenticator(place, bytes).register(options)
    expect(await ceremony.verifyRegistration(register(Buffer.alloc(1_023, 1)), challenge)).toBeDefined()
    expect(await ceremony.verifyRegistration(register(Buffer.alloc(1_024, 1)), challenge)).toBeUndefined()
    expect(await ceremony.verifyRegistration(register(Buffer.alloc(0)), challenge)).toBeUndefined()
    const sent = { ...register(Buffer.alloc(32, 1)), id: 'AAAA', rawId: 'AAAA' }
    expect(await ceremony.verifyRegistration(sent, challenge)).toBeUndefined()
  })

  it('creates no passkey from malformed bytes', async () => {
    const options = await ceremony.creationOptions(challenge, user, [])
    const sent = new SoftAuthenticator(place).register(options)
    for (const attestationObject of [
      '',
      'AAAA',
      'o2NmbXQ',
      Buffer.alloc(60_000, 0x9f).toString('base64url'),
    ]) {
      const broken = { ...sent, response: { ...sent.response, attestationObject } }
      expect(await ceremony.verifyRegistration(broken, challenge)).toBeUndefined()
    }
    for (const clientDataJSON of ['', 'bnVsbA', 'AAAA']) {
      const broken = { ...sent, response: { ...sent.response, clientDataJSON } }
      expect(await ceremony.verifyRegistration(broken, challenge)).toBeUndefined()
    }
  })
})

describe('an assertion', () => {
  const verify = (passkey: PasskeyRow | undefined, sent: Parameters<typeof ceremony.verifyAssertion>[0]) =>
    ceremony.verifyAssertion(sent, { challenge, named: true, ...(passkey !== undefined && { passkey }) })

  it('is valid with any counter, which is returned', async () => {
    const { authenticator, passkey } = await registered()
    const sent = authenticator.assert({ challenge })
    expect(await verify(passkey, sent)).toEqual({ counter: 1, backupEligible: false })
    const back = authenticator.assert({ challenge }, { counter: 0 })
    expect(await verify({ ...passkey, counter: 9 }, back)).toEqual({ counter: 0, backupEligible: false })
  })

  it.each([
    ...deviations,
    ['a registration', { type: 'webauthn.create' }] as const,
    ['another key', { key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey }] as const,
    ['another user', { userHandle: Buffer.from('usr_1').toString('base64url') }] as const,
  ])('is invalid with %s', async (_name, deviation) => {
    const { authenticator, passkey } = await registered()
    expect(await verify(passkey, authenticator.assert({ challenge }, deviation))).toBeUndefined()
  })

  it('is invalid if the passkey does not exist', async () => {
    const { authenticator } = await registered()
    expect(await verify(undefined, authenticator.assert({ challenge }))).toBeUndefined()
  })

  it('must have a user handle unless the ceremony began with an e-mail', async () => {
    const { authenticator, passkey } = await registered()
    const nameless = authenticator.assert({ challenge }, { userHandle: null })
    expect(await verify(passkey, nameless)).toBeDefined()
    const expected = { challenge, named: false, passkey }
    expect(await ceremony.verifyAssertion(nameless, expected)).toBeUndefined()
    expect(await ceremony.verifyAssertion(authenticator.assert({ challenge }), expected)).toBeDefined()
  })
})

/** Vectors of WebAuthn Level 3, section 16, in hex. */
const vectors = {
  // 16.2, ES256 Credential with No Attestation.
  none: {
    id: 'f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94ff3ec330084be4',
    challenge: '00c30fb78531c464d2b6771dab8d7b603c01162f2fa486bea70f283ae556e130',
    clientDataJSON:
      '7b2274797065223a22776562617574686e2e637265617465222c226368616c6c656e6765223a22414d4d507434557878475453746e63647134313759447742466938767049612d7077386f4f755657345441222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a20426b5165446a646354427258426941774a544c453551227d',
    attestationObject:
      'a363666d74646e6f6e656761747453746d74a068617574684461746158a4bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b559000000008446ccb9ab1db374750b2367ff6f3a1f0020f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94ff3ec330084be4a5010203262001215820afefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61225820930a56b87a2fca66334b03458abf879717c12cc68ed73290af2e2664796b9220',
    assertion: {
      challenge: '39c0e7521417ba54d43e8dc95174f423dee9bf3cd804ff6d65c857c9abf4d408',
      authenticatorData: 'bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b51900000000',
      clientDataJSON:
        '7b2274797065223a22776562617574686e2e676574222c226368616c6c656e6765223a224f63446e55685158756c5455506f334a5558543049393770767a7a59425039745a63685879617630314167222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73657d',
      signature:
        '3046022100f50a4e2e4409249c4a853ba361282f09841df4dd4547a13a87780218deffcd380221008480ac0f0b93538174f575bf11a1dd5d78c6e486013f937295ea13653e331e87',
    },
  },
  // 16.3, ES256 Credential with Self Attestation.
  packedSelf: {
    id: '455ef34e2043a87db3d4afeb39bbcb6cc32df9347c789a865ecdca129cbef58c',
    challenge: '7869c2b772d4b58eba9378cf8f29e26cf935aa77df0da89fa99c0bdc0a76f7e5',
    clientDataJSON:
      '7b2274797065223a22776562617574686e2e637265617465222c226368616c6c656e6765223a2265476e4374334c55745936366b336a506a796e6962506b31716e666644616966715a774c33417032392d55222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a205539685458764b453255526b4d6e625f307859485667227d',
    attestationObject:
      'a363666d74667061636b65646761747453746d74a263616c672663736967584630440220067a20754ab925005dbf378097c92120031581c73228d1fb4f5b881bcd7da98302207fc7b147558c7c0eba3af18bd9d121fa3d3a26d17fe3f220272178f473b6006d68617574684461746158a4bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b55d00000000df850e09db6afbdfab51697791506cfc0020455ef34e2043a87db3d4afeb39bbcb6cc32df9347c789a865ecdca129cbef58ca5010203262001215820eb151c8176b225cc651559fecf07af450fd85802046656b34c18f6cf193843c5225820927b8aa427a2be1b8834d233a2d34f61f13bfd44119c325d5896e183fee484f2',
    assertion: {
      challenge: '4478a10b1352348dd160c1353b0d469b5db19eb91c27f7dfa6fed39fe26af20b',
      authenticatorData: 'bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50900000000',
      clientDataJSON:
        '7b2274797065223a22776562617574686e2e676574222c226368616c6c656e6765223a225248696843784e534e493352594d45314f7731476d3132786e726b634a5f6666707637546e2d4a71386773222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a206754623533727a36456853576f6d58477a696d433151227d',
      signature:
        '304402203310b9431903c401f1be2bdc8d23a4007682dbbddcf846994947b7f465daf84002204e94dd00047b316061b3b99772b7efd95994a83ef584b3b6b825ea3550251b66',
    },
  },
  // 16.7, Packed Attestation with ES256 Credential: the user was verified in both ceremonies.
  packed: {
    id: 'c9a6f5b3462d02873fea0c56862234f99f081728084e511bb7760201a89054a5',
    challenge: 'c1184a5fddf8045e13dc47f54b61f5a656b666b59018f16d870e9256e9952012',
    clientDataJSON:
      '7b2274797065223a22776562617574686e2e637265617465222c226368616c6c656e6765223a227752684b58393334424634543345663153324831706c61325a725751475046746877365356756d56494249222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a20396138624e596a4b436757724258552d66436c316167227d',
    attestationObject:
      'a363666d74667061636b65646761747453746d74a363616c6726637369675847304502203f19ec4b229f46ab8c45eff29b904ff10c0390dc40bf1216f04a78f4ceba3425022100fe7041a32759aff05a0f9f26c70a999c7a284451ba89234a1d3483c25e21925b637835638159022530820221308201c8a00302010202110088c220f83c8ef1feafe94deae45faad0300a06082a8648ce3d0403023062311e301c06035504030c15576562417574686e207465737420766563746f7273310c300a060355040a0c0357334331253023060355040b0c1c41757468656e74696361746f72204174746573746174696f6e204341310b30090603550406130241413020170d3234303130313030303030305a180f33303234303130313030303030305a305f311e301c06035504030c15576562417574686e207465737420766563746f7273310c300a060355040a0c0357334331223020060355040b0c1941757468656e74696361746f72204174746573746174696f6e310b30090603550406130241413059301306072a8648ce3d020106082a8648ce3d03010703420004a91ba4389409dd38a428141940ca8feb1ac0d7b4350558104a3777a49322f3798440f378b3398ab2d3bb7bf91322c92eb23556f59ad0a836fec4c7663b0e4dc3a360305e300c0603551d130101ff04023000300e0603551d0f0101ff040403020780301d0603551d0e04160414a589ba72d060842ab11f74fb246bdedab16f9b9b301f0603551d2304183016801445aff715b0dd786741fee996ebc16547a3931b1e300a06082a8648ce3d040302034700304402201726b9d85ecd8a5ed51163722ca3a20886fd9b242a0aa0453d442116075defd502207ef471e530ac87961a88a7f0d0c17b091ffc6b9238d30f79f635b417be5910e768617574684461746158a4bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b54d00000000876ca4f52071c3e9b25509ef2cdf7ed60020c9a6f5b3462d02873fea0c56862234f99f081728084e511bb7760201a89054a5a50102032620012158201cf27f25da591208a4239c2e324f104f585525479a29edeedd830f48e77aeae522582059e4b7da6c0106e206ce390c93ab98a15a5ec3887e57f0cc2bece803b920c423',
    assertion: {
      challenge: 'b1106fa46a57bef1781511c0557dc898a03413d5f0f17d244630c194c7e1adb5',
      authenticatorData: 'bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50d00000000',
      clientDataJSON:
        '7b2274797065223a22776562617574686e2e676574222c226368616c6c656e6765223a2273524276704770587676463446524841565833496d4b4130453958773858306b526a44426c4d6668726255222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a20415a4d77794d78496244382d756775464e7036723851227d',
      signature:
        '30450220694969d3ee928de6f02ef23a9c644d7d779916451734a94b432542f498a1ebe90221008b0819c824218a97152cd099c55bfb1477b29d900a49a64018314f9bfccda163',
    },
  },
} as const

describe('the test vectors of WebAuthn Level 3', () => {
  const text = (hex: string) => Buffer.from(hex, 'hex').toString('base64url')
  const sentOf = ({ id, ...vector }: (typeof vectors)[keyof typeof vectors]) => {
    const named = { id: text(id), rawId: text(id), type: 'public-key', clientExtensionResults: {} } as const
    const { assertion } = vector
    return {
      challenge: text(vector.challenge),
      registration: {
        ...named,
        response: {
          clientDataJSON: text(vector.clientDataJSON),
          attestationObject: text(vector.attestationObject),
        },
      },
      assertionChallenge: text(assertion.challenge),
      assertion: {
        ...named,
        response: {
          clientDataJSON: text(assertion.clientDataJSON),
          authenticatorData: text(assertion.authenticatorData),
          signature: text(assertion.signature),
        },
      },
    }
  }

  it('verify in both ceremonies if the user was verified (16.7)', async () => {
    const sent = sentOf(vectors.packed)
    const passkey = await ceremony.verifyRegistration(sent.registration, sent.challenge)
    if (passkey === undefined) throw new Error('Expected a passkey')
    const row = { ...passkey, userId, createdAtMs: 0 }
    const expected = { challenge: sent.assertionChallenge, named: true, passkey: row }
    expect(await ceremony.verifyAssertion(sent.assertion, expected)).toEqual({
      counter: 0,
      backupEligible: true,
    })
  })

  it.each(['none', 'packedSelf'] as const)(
    'are refused only because of their unverified user: %s',
    async (name) => {
      const sent = sentOf(vectors[name])
      const expected = {
        expectedOrigin: place.origin,
        expectedRPID: place.rpId,
        requireUserVerification: false,
      }
      const registration = await verifyRegistrationResponse({
        ...expected,
        response: sent.registration,
        expectedChallenge: sent.challenge,
      })
      if (registration.registrationInfo === undefined) throw new Error('Expected a registration')
      const { credential, userVerified } = registration.registrationInfo
      const { verified } = await verifyAuthenticationResponse({
        ...expected,
        response: sent.assertion,
        expectedChallenge: sent.assertionChallenge,
        credential,
      })
      expect(verified).toBe(true)
      const registered = await ceremony.verifyRegistration(sent.registration, sent.challenge)
      expect(registered !== undefined).toBe(userVerified)
      const publicKey = Buffer.from(credential.publicKey).toString('base64url')
      const row = { id: credential.id, publicKey, counter: 0, transports: [], backupEligible: true }
      const passkey = { ...row, userId, createdAtMs: 0 }
      const expectedAssertion = { challenge: sent.assertionChallenge, named: true, passkey }
      expect(await ceremony.verifyAssertion(sent.assertion, expectedAssertion)).toBeUndefined()
    },
  )
})
