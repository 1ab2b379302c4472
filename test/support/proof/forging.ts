import { createHmac, sign } from 'node:crypto'
import { type JwtKey, jwtKey } from '../../../src/auth/jwt-key.js'
import { agentSeed } from '../../../src/strand/keys.js'

/** The parts of a token. */
export interface TokenParts {
  header: Record<string, unknown>
  claims: Record<string, unknown>
  /** The signature as encoded in the token. */
  signature: string
}

/** The key with which a server with this master seed signs the tokens of its root namespace. */
export function serverKey(masterSeedHex: string, epoch = 0): Promise<JwtKey> {
  return jwtKey(agentSeed(Buffer.from(masterSeedHex, 'hex'), 'default'), '', epoch)
}

/** Base64url of a text, or of the JSON of any other value. */
export function encoded(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
}

/** The parts of a token. */
export function partsOf(token: string): TokenParts {
  const [header = '', claims = '', signature = ''] = token.split('.')
  const read = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString())
  return { header: read(header), claims: read(claims), signature }
}

/**
 * Signs any header and claims with Ed25519; texts are not encoded as JSON.
 * @param key the key of the server, or any other
 */
export function signedToken(header: unknown, claims: unknown, key: Pick<JwtKey, 'privateKey'>): string {
  const input = `${encoded(header)}.${encoded(claims)}`
  return `${input}.${sign(null, Buffer.from(input), key.privateKey).toString('base64url')}`
}

/** "Signs" with an HMAC whose secret is public. */
export function macToken(
  { header, claims }: Pick<TokenParts, 'header' | 'claims'>,
  hash: 'sha256' | 'sha384' | 'sha512',
  secret: Buffer | string,
): string {
  const input = `${encoded({ ...header, alg: `HS${hash.slice(3)}` })}.${encoded(claims)}`
  return `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`
}
