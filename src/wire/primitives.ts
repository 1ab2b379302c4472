import { Type } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { zones } from '../strand/zone.js'
import { documentedParts } from './documented.js'

/** The pattern of agent names that a caller can choose. */
export const agentNamePattern = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'

/**
 * The pattern of agent addresses: members of organisms have the id of the organism and `::` before their
 * name.
 */
export const agentAddressPattern = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$'

export const AgentName = Type.String({ pattern: agentNamePattern, description: 'Name of a new agent' })
export const AgentAddress = Type.String({ pattern: agentAddressPattern, description: 'Name of an agent' })
/** Control characters, line separators, and characters that change the direction of a text. */
const misleading = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff'
/** A display name that a caller can choose. */
export const DisplayName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: `^[^${misleading}]*$`,
  description: 'Display name, without control characters and characters that change the direction of text',
})
export const ZoneName = Type.Enum([...zones], {
  description: 'Which mutations of written records are allowed',
})
export const Hash = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256, bare hex' })
export const PrefixedHash = Type.String({
  pattern: '^sha256:[0-9a-f]{64}$',
  description: 'SHA-256 with its prefix',
})
export const PublicKey = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Ed25519 public key, hex' })
export const Signature = Type.Union([Type.String({ pattern: '^[0-9a-f]{128}$' }), Type.Null()], {
  description: 'Ed25519 signature over the record header, hex; null if a later record seals this one',
})
export const Seq = Type.Integer({
  minimum: 0,
  description: 'Position in the strand; 0 is the genesis record',
})
export const HlcText = Type.String({
  pattern: '^[0-9a-f]{12}-[0-9a-f]{4}$',
  description: 'Hybrid logical clock: 48-bit Unix milliseconds and a 16-bit counter',
})
export const UnixMs = Type.Integer({ minimum: 0, description: 'Unix milliseconds' })
export const Moment = Type.Union(
  [Type.Integer({ minimum: 0 }), Type.String({ minLength: 1, maxLength: 64 })],
  {
    description:
      'A number is Unix milliseconds: 0, or at least 100000000000 (smaller numbers are probably seconds). A string is an HLC or an ISO 8601 time',
  },
)
export const Cursor = Type.String({ maxLength: 512, description: 'The `next_cursor` of the previous page' })
export const NextCursor = Type.Union([Cursor, Type.Null()], { description: 'Null after the last page' })
/** Describes `total` of a page of a list. */
export const totalDescription = `All matches, not only those of this page. With a prefix they are counted up to ${limits.countedRowsMax}, which means that or more`
export const PageLimit = Type.Integer({
  minimum: 1,
  maximum: limits.pageRowsMax,
  default: limits.pageRowsDefault,
  description: 'Rows in the page',
})
export const JsonObject = Type.Record(Type.String(), Type.Unknown(), { description: 'Any JSON object' })

documentedParts({ AgentAddress, ZoneName, Hash, PublicKey, Signature, HlcText, UnixMs, Moment })
