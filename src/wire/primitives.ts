import { Type } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { zones } from '../strand/zone.js'
import { documentedParts } from './documented.js'

/** An agent's name as a caller may choose it. */
export const agentNamePattern = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'

/** An agent's name as it may be addressed: organisms put their id and `::` before it. */
export const agentAddressPattern = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$'

export const AgentName = Type.String({ pattern: agentNamePattern, description: 'Name of a new agent' })
export const AgentAddress = Type.String({ pattern: agentAddressPattern, description: 'Name of an agent' })
/** Control characters, line separators, and characters that change the direction of a text. */
const misleading = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff'
/** A name for people, as a caller may choose it. */
export const DisplayName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: `^[^${misleading}]*$`,
  description: 'For people. Without control characters and those that change the direction of a text',
})
export const ZoneName = Type.Enum([...zones], { description: 'What may happen to records once written' })
export const Hash = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256, bare hex' })
export const PrefixedHash = Type.String({
  pattern: '^sha256:[0-9a-f]{64}$',
  description: 'SHA-256 with its prefix',
})
export const PublicKey = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Ed25519 public key, hex' })
export const Signature = Type.Union([Type.String({ pattern: '^[0-9a-f]{128}$' }), Type.Null()], {
  description: 'Ed25519 signature over the record header, hex; null where a later record seals this one',
})
export const Seq = Type.Integer({ minimum: 0, description: 'Place in the strand; 0 is the genesis record' })
export const HlcText = Type.String({
  pattern: '^[0-9a-f]{12}-[0-9a-f]{4}$',
  description: 'Hybrid logical clock: 48-bit Unix milliseconds and a 16-bit counter',
})
export const UnixMs = Type.Integer({ minimum: 0, description: 'Unix milliseconds' })
export const Moment = Type.Union(
  [Type.Integer({ minimum: 0 }), Type.String({ minLength: 1, maxLength: 64 })],
  {
    description:
      'Unix milliseconds as a number, 0 or from 100000000000 up (smaller ones would be seconds); an HLC or ISO 8601 as a string',
  },
)
export const Cursor = Type.String({ maxLength: 512, description: 'Where the page before ended' })
export const NextCursor = Type.Union([Cursor, Type.Null()], { description: 'Null at the end' })
export const PageLimit = Type.Integer({
  minimum: 1,
  maximum: limits.pageRowsMax,
  default: limits.pageRowsDefault,
  description: 'Rows in the page',
})
export const JsonObject = Type.Record(Type.String(), Type.Unknown(), { description: 'Any JSON object' })

documentedParts({ AgentAddress, ZoneName, Hash, PublicKey, Signature, HlcText, UnixMs, Moment })
