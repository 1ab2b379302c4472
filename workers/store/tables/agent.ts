import type { Policy } from '../../../src/auth/row-policy.js'
import { asBuffer } from '../../../src/base/bytes.js'
import type { Hlc } from '../../../src/strand/hlc.js'
import type { KeyPair } from '../../../src/strand/keys.js'
import type { Zone } from '../../../src/strand/zone.js'

/** One agent that is open: its row, its secret key and where its strand ends. */
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
  head: Head
  /** Body bytes of the whole strand. */
  strandBytes: number
  /** Whether any record was ever deleted; for most strands no mutation has to be looked up. */
  mutated: boolean
  /** What users may do here (docs/adr/0012-row-policies.md); nothing without a policy. */
  policies: readonly Policy[]
  /** The line that wrote them; undefined where they were imported or are from an earlier version. */
  policiesBy?: string | undefined
  /** The keys before the one in force, in their order; `keyIndex` is how many there are. */
  retiredKeys: readonly RetiredKey[]
  /** It is being imported: it can be read, takes no writes, and has no secret key. */
  importing: boolean
  /** It has never taken writes here: all of it was imported, and its zone does not judge the import. */
  fresh: boolean
  /** Seqs of records that were imported without their bodies, and whose `sys/erase` has not come yet. */
  owedErasures: readonly number[]
}

/** A public key that an agent had. */
export interface RetiredKey {
  publicKey: string
  /** Seq of the rotation by which it named the next one. */
  lastSeq: number
}

/** The last record of a strand. */
export interface Head {
  seq: number
  hash: string
  hlc: Hlc
  /** Hex; the last record of a commit group is always signed. */
  signature: string
}

/** The row of an agent. The sealed seed is absent if the key pair is derived from the master seed. */
export interface AgentRow {
  no: number
  zone: Zone
  createdAtMs: number
  publicKey: string
  strand: string
  sealedSeed?: string
  retiredKeys?: readonly RetiredKey[]
  policies?: readonly Policy[]
  policiesBy?: string | undefined
  importing?: boolean
  /** As in `Agent`; absent means false. */
  fresh?: boolean
  owedErasures?: readonly number[]
}

/** Reads the row of an agent. */
export function agentRowOf(bytes: Uint8Array): AgentRow {
  return JSON.parse(asBuffer(bytes).toString()) as AgentRow
}
