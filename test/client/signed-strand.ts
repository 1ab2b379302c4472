import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import canonicalize from 'canonicalize'

/** One line of an export as its members. */
export type Line = Record<string, unknown>

/** How a record of a test strand differs from a plain one. */
interface RecordPlan {
  type?: string
  body?: unknown
  /** The text of the body instead of `body`; it need not be canonical or JSON. */
  text?: string
  /**
   * The clock, Unix milliseconds; by default one second after the epoch, plus one millisecond for each
   * record.
   */
  ms?: number
  /** Seq of the record that seals this one. */
  sealedBy?: number
  erased?: boolean
  withheld?: boolean
}

const ZEROS = '0'.repeat(64)

/** An Ed25519 key pair in hex; the seed is one repeated byte. */
export function keyPair(byte: number): { secret: Uint8Array; publicHex: string } {
  const secret = new Uint8Array(32).fill(byte)
  return { secret, publicHex: bytesToHex(ed25519.getPublicKey(secret)) }
}

/**
 * A test oracle: creates a strand according to docs/FORMAT.md, with another crypto library than the
 * product's. `rotate` changes the key from the next record on.
 */
export class SignedStrand {
  readonly agent: string
  readonly lines: Line[] = []
  readonly hashes: Uint8Array[] = []
  #keys: ReturnType<typeof keyPair>
  #strand = ZEROS

  /**
   * @param byte the seed of the first key is this byte, repeated
   * @param genesis the zone, or members of the genesis record
   */
  constructor(agent = 'ledger', byte = 1, genesis: string | Record<string, unknown> = 'free') {
    this.agent = agent
    this.#keys = keyPair(byte)
    const members = typeof genesis === 'string' ? { zone: genesis } : genesis
    const body = { agent, created_at_ms: 1, public_key: this.#keys.publicHex, ...members }
    this.append({ type: 'sys/genesis', body })
    this.#strand = this.head
  }

  get head(): string {
    return bytesToHex(this.hashes.at(-1) ?? new Uint8Array())
  }

  append(plan: RecordPlan = {}): this {
    const seq = this.lines.length
    const body = plan.text ?? canonicalize(plan.body ?? { seq }) ?? ''
    const salt = new Uint8Array(16).fill(seq)
    const commitment = sha256(concatBytes(utf8ToBytes('strand-body/v1\n'), salt, utf8ToBytes(body)))
    const hlc = `${(plan.ms ?? 1_000 + seq).toString(16).padStart(12, '0')}-0000`
    const h =
      `strand-record/v1\nstrand ${seq === 0 ? ZEROS : this.#strand}\nkey ${this.#keys.publicHex}\nseq ${seq}\n` +
      `prev ${seq === 0 ? ZEROS : this.head}\nhlc ${hlc}\ntype ${plan.type ?? 'record'}\nbody ${bytesToHex(commitment)}\n`
    const seal =
      plan.sealedBy === undefined
        ? { sig: bytesToHex(ed25519.sign(utf8ToBytes(h), this.#keys.secret)) }
        : { sealed_by: plan.sealedBy }
    const missing = plan.withheld ? { withheld: true } : plan.erased ? { erased: true } : undefined
    const content = missing ?? { salt: bytesToHex(salt), body }
    this.lines.push({ h, ...seal, ...content })
    this.hashes.push(sha256(concatBytes(Uint8Array.of(0), utf8ToBytes(h))))
    return this
  }

  /** @param members further members of the body */
  rotate(byte: number, members: Record<string, unknown> = {}): this {
    const next = keyPair(byte)
    const proofText = `strand-key-rotate/v1\n${this.#strand}\n${next.publicHex}\n`
    const proof = bytesToHex(ed25519.sign(utf8ToBytes(proofText), next.secret))
    this.append({ type: 'sys/key_rotate', body: { public_key: next.publicHex, proof, ...members } })
    this.#keys = next
    return this
  }

  /** Continues with another key without a rotation, which makes the strand invalid. */
  usurp(byte: number): this {
    this.#keys = keyPair(byte)
    return this
  }

  /** The lines of the export, which a test can change. */
  exportLines(fromSeq = 0): Line[] {
    const records = this.lines.slice(fromSeq)
    const toSeq = this.lines.length - 1
    const publicKey = /\nkey ([0-9a-f]{64})\n/.exec(String(records[0]?.['h']))?.[1]
    const manifest = {
      format: 'strand-export/v1',
      agent: this.agent,
      strand: this.#strand,
      public_key: publicKey,
      from_seq: fromSeq,
      to_seq: toSeq,
      record_count: toSeq,
    }
    return [
      manifest,
      ...records,
      { chain_head: this.head, records: records.length, checkpoint: this.#note() },
    ]
  }

  /** The export as text. */
  exportText(fromSeq = 0): string {
    return textOf(this.exportLines(fromSeq))
  }

  #note(): string {
    const origin = `strandfast/${this.#strand}`
    const root = Buffer.from(merkleRoot(this.hashes)).toString('base64')
    const text = `${origin}\n${this.lines.length}\n${root}\n`
    const publicKey = hexToBytes(this.#keys.publicHex)
    const keyId = sha256(concatBytes(utf8ToBytes(`${origin}\n`), Uint8Array.of(1), publicKey)).subarray(0, 4)
    const signed = concatBytes(keyId, ed25519.sign(utf8ToBytes(text), this.#keys.secret))
    return `${text}\n\u2014 ${origin} ${Buffer.from(signed).toString('base64')}\n`
  }
}

/** The lines of an export as text. */
export function textOf(lines: readonly Line[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** The definition in RFC 6962, 2.1. */
function merkleRoot(leaves: readonly Uint8Array[]): Uint8Array {
  const [only] = leaves
  if (leaves.length === 1 && only) return only
  let middle = 1
  while (middle * 2 < leaves.length) middle *= 2
  const left = merkleRoot(leaves.slice(0, middle))
  return sha256(concatBytes(Uint8Array.of(1), left, merkleRoot(leaves.slice(middle))))
}
