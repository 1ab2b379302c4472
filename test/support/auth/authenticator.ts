import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { cborMap } from './cbor.js'

/** A credential that a browser sends. */
export interface SentRegistration {
  id: string
  rawId: string
  type: 'public-key'
  response: { clientDataJSON: string; attestationObject: string; transports?: string[] }
  clientExtensionResults: object
}

export interface SentAssertion {
  id: string
  rawId: string
  type: 'public-key'
  response: {
    clientDataJSON: string
    authenticatorData: string
    signature: string
    userHandle?: string | null
  }
  clientExtensionResults: object
}

/** Wrong behaviour of a browser or an authenticator. */
export interface Deviation {
  origin?: string
  rpId?: string
  /** The type in the client data. */
  type?: string
  challenge?: string
  crossOrigin?: boolean
  /** The authenticator did not verify its user, or no user was present. */
  userVerified?: false
  userPresent?: false
  backupEligible?: true
  counter?: number
  /** Null for an assertion without a user handle. */
  userHandle?: string | null
  /** A different signing key. */
  key?: KeyObject
}

const FLAGS = { present: 0x01, verified: 0x04, backupEligible: 0x08, credential: 0x40 } as const

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest()
const base64url = (bytes: Uint8Array | string) => Buffer.from(bytes).toString('base64url')

/** An authenticator in memory: one ES256 key for one user, used by a page of one origin. */
export class SoftAuthenticator {
  readonly #origin: string
  readonly #rpId: string
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  /** The credential id, base64url. */
  readonly id: string
  counter = 0
  #userHandle = ''

  /** @param idBytes the credential id, random by default */
  constructor(party: { origin: string; rpId: string }, idBytes: Uint8Array = randomBytes(32)) {
    this.#origin = party.origin
    this.#rpId = party.rpId
    this.id = base64url(idBytes)
  }

  /** Answers creation options with a new credential, without attestation. */
  register(
    options: { challenge: string; user: { id: string } },
    deviation: Deviation = {},
    statement: { fmt: string; attStmt: Buffer } = { fmt: 'none', attStmt: cborMap([]) },
  ): SentRegistration {
    this.#userHandle = options.user.id
    const authData = Buffer.concat([
      this.#authData(deviation, FLAGS.credential),
      Buffer.alloc(16),
      uint(Buffer.from(this.id, 'base64url').length, 2),
      Buffer.from(this.id, 'base64url'),
      this.#coseKey(),
    ])
    const attestationObject = cborMap([
      ['fmt', statement.fmt],
      ['attStmt', { encoded: statement.attStmt }],
      ['authData', authData],
    ])
    return {
      id: this.id,
      rawId: this.id,
      type: 'public-key',
      response: {
        clientDataJSON: base64url(this.#clientData('webauthn.create', options.challenge, deviation)),
        attestationObject: base64url(attestationObject),
        transports: ['internal'],
      },
      clientExtensionResults: {},
    }
  }

  /** Answers request options, even if they do not contain this passkey, and increments the counter. */
  assert({ challenge }: { challenge: string }, deviation: Deviation = {}): SentAssertion {
    this.counter += 1
    const authData = this.#authData(deviation, 0)
    const clientData = this.#clientData('webauthn.get', challenge, deviation)
    const signed = Buffer.concat([authData, sha256(clientData)])
    const userHandle = deviation.userHandle === undefined ? this.#userHandle : deviation.userHandle
    return {
      id: this.id,
      rawId: this.id,
      type: 'public-key',
      response: {
        clientDataJSON: base64url(clientData),
        authenticatorData: base64url(authData),
        signature: base64url(sign('sha256', signed, deviation.key ?? this.#keys.privateKey)),
        userHandle,
      },
      clientExtensionResults: {},
    }
  }

  #clientData(type: string, challenge: string, deviation: Deviation): string {
    return JSON.stringify({
      type: deviation.type ?? type,
      challenge: deviation.challenge ?? challenge,
      origin: deviation.origin ?? this.#origin,
      crossOrigin: deviation.crossOrigin ?? false,
    })
  }

  #authData(deviation: Deviation, more: number): Buffer {
    const flags =
      more |
      (deviation.userPresent === false ? 0 : FLAGS.present) |
      (deviation.userVerified === false ? 0 : FLAGS.verified) |
      (deviation.backupEligible === true ? FLAGS.backupEligible : 0)
    return Buffer.concat([
      sha256(deviation.rpId ?? this.#rpId),
      Buffer.of(flags),
      uint(deviation.counter ?? this.counter, 4),
    ])
  }

  /** The public key in COSE: EC2, ES256, P-256. */
  #coseKey(): Buffer {
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' })
    return cborMap([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, 'base64url')],
      [-3, Buffer.from(y, 'base64url')],
    ])
  }
}

function uint(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  buffer.writeUIntBE(value, 0, bytes)
  return buffer
}
