import type { Policy } from '../../../src/auth/row-policy.js'
import {
  isFlag,
  isText,
  listOf,
  members,
  oneOf,
  optional,
  isHash,
  isKeyNumber,
} from '../../../src/base/shape.js'
import { isPolicies } from '../../../src/protocol/proposal-messages.js'
import type { KeyPair } from '../../../src/strand/keys.js'
import { zones, type Zone } from '../../../src/strand/zone.js'
import type { ShownHead } from '../../../src/wire/render.js'
import { checkedRow } from './row-shape.js'

/** An agent in memory: its row, its key pair and the end of its strand. */
export interface Agent {
  name: string
  no: number
  zone: Zone
  createdAtMs: number
  publicKey: string
  /** Hash of the genesis record. */
  strand: string
  keyIndex: number
  keyPair: KeyPair
  /** The last record of the strand. */
  head: ShownHead
  /** Body bytes of the whole strand. */
  strandBytes: number
  /** Whether any record was ever deleted; if not, reads need not look up mutations. */
  mutated: boolean
  /** Permissions of users (docs/adr/0012-row-policies.md); without a policy, users have none. */
  policies: readonly Policy[]
  /**
   * The key lineage that wrote the policies; undefined if there are none, or if they are from an earlier version.
   */
  policiesBy?: string | undefined
  /** The keys before the current one, in order; `keyIndex` is their number. */
  retiredKeys: readonly RetiredKey[]
  /** Its import is not complete: it can be read, but accepts no writes and has no secret key. */
  importing: boolean
  /** The number of its first records that were imported, which is known once the import is complete. */
  importedRecords: number
}

/** A public key that an agent had. */
export interface RetiredKey {
  publicKey: string
  /** Seq of the key rotation to the next key. */
  lastSeq: number
}

export interface AgentRow extends Pick<
  Agent,
  'no' | 'zone' | 'createdAtMs' | 'publicKey' | 'strand' | 'policiesBy'
> {
  /** Absent if the key pair is derived from the master seed. */
  sealedSeed?: string
  retiredKeys?: readonly RetiredKey[]
  policies?: readonly Policy[]
  importing?: boolean
  /** As in `Agent`; absent means 0. */
  importedRecords?: number
}

const isAgentRow = members<AgentRow>({
  no: isKeyNumber,
  zone: oneOf(...zones),
  createdAtMs: isKeyNumber,
  publicKey: isHash,
  strand: isHash,
  sealedSeed: optional(isText),
  retiredKeys: optional(listOf(members<RetiredKey>({ publicKey: isHash, lastSeq: isKeyNumber }))),
  policies: optional(isPolicies),
  policiesBy: optional(isText),
  importing: optional(isFlag),
  importedRecords: optional(isKeyNumber),
})

/** Decodes the row of an agent. @throws InvalidRow */
export function agentRowOf(name: string, bytes: Uint8Array): AgentRow {
  return checkedRow(`agents ${name}`, bytes, isAgentRow)
}
