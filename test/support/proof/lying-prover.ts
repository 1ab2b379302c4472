import { fc } from '../fast-check.js'
import { signCheckpoint } from '../../../src/strand/checkpoint.js'
import { genesisBody, keyRotateBody } from '../../../src/strand/genesis.js'
import { bodyCommitment, recordHash } from '../../../src/strand/hash.js'
import { headerText, zeroHash, rotationProofText } from '../../../src/strand/header.js'
import { canonicalJson } from '../../../src/strand/json.js'
import { keyPairFromSeed, signText, type KeyPair } from '../../../src/strand/keys.js'
import { treeRoot } from '../../../src/strand/merkle.js'
import { manifestLine, recordLine, trailerLine } from '../../../src/strand/strand-export.js'

/*
 * A malicious operator with all keys of the strands and of the log. Its forgeries are signed and chained
 * correctly, so that only an earlier checkpoint can reveal a changed history. Each case has the expected
 * result.
 */

const keysOf = (byte: number) => keyPairFromSeed(Buffer.alloc(32, byte))
const LOG = 'server::log'

interface ForgedRecord {
  header: string
  salt: string
  body: string
  hash: string
  sig: string | undefined
  sealedBy: number | undefined
}

/** A strand that is written with its keys, outside of a server. */
export class ForgedStrand {
  readonly agent: string
  readonly records: ForgedRecord[]
  #keys: KeyPair

  constructor(agent: string, byte: number, records?: readonly ForgedRecord[]) {
    this.agent = agent
    this.#keys = keysOf(byte)
    this.records = [...(records ?? [])]
    if (records !== undefined) return
    const publicKey = this.#keys.publicKey
    this.write(genesisBody({ agent, createdAtMs: byte, publicKey, zone: 'free' }), { type: 'sys/genesis' })
  }

  get strand(): string {
    return this.records[0]?.hash ?? zeroHash
  }

  get size(): number {
    return this.records.length
  }

  get publicKey(): string {
    return this.#keys.publicKey
  }

  /** A new history that begins with the first `size` records of this one. */
  fork(size: number): ForgedStrand {
    return new ForgedStrand(this.agent, this.#byte(), this.records.slice(0, size))
  }

  #byte(): number {
    for (let byte = 1; byte < 256; byte += 1) if (keysOf(byte).publicKey === this.publicKey) return byte
    throw new Error('The key is not derived from one byte')
  }

  write(body: string, { type = 'record', sealedBy }: { type?: string; sealedBy?: number } = {}): this {
    const seq = this.size
    const salt = Buffer.from(recordHash(`${this.agent} ${seq} ${body}`), 'hex').subarray(0, 16)
    const header = headerText({
      strand: this.strand,
      key: this.publicKey,
      seq,
      prev: this.records.at(-1)?.hash ?? zeroHash,
      hlc: `${(1_000 + seq).toString(16).padStart(12, '0')}-0000`,
      type,
      body: bodyCommitment(salt, Buffer.from(body)),
    })
    const sig = sealedBy === undefined ? signText(this.#keys.secretKey, header).toString('hex') : undefined
    this.records.push({ header, salt: salt.toString('hex'), body, hash: recordHash(header), sig, sealedBy })
    return this
  }

  rotate(byte: number): this {
    const next = keysOf(byte)
    const proof = signText(next.secretKey, rotationProofText(this.strand, next.publicKey)).toString('hex')
    this.write(keyRotateBody(next.publicKey, proof), { type: 'sys/key_rotate' })
    this.#keys = next
    return this
  }

  erase(seq: number): this {
    const target = this.records[seq]?.hash ?? zeroHash
    return this.write(canonicalJson({ principal: 'root', target, target_seq: seq }), { type: 'sys/erase' })
  }

  logHeads(...heads: [string, number, string][]): this {
    return this.write(canonicalJson({ clocks: [], heads }), { type: 'sys/heads' })
  }

  /** The head of the first `size` records for the log. */
  head(size: number): [string, number, string] {
    return [this.strand, size, this.records[size - 1]?.hash ?? zeroHash]
  }

  note(size = this.size, keys = this.#keys): string {
    const leaves = this.records.slice(0, size).map(({ hash }) => Buffer.from(hash, 'hex'))
    const root = treeRoot(leaves.length, { leaves: (start, end) => leaves.slice(start, end) })
    const rootHex = Buffer.from(root).toString('hex')
    return signCheckpoint({ origin: `strandfast/${this.strand}`, size, rootHex }, keys)
  }

  /** The whole export, with some bodies left out. */
  export({ erased = [], withheld = [], whole = true }: Hidden = {}): Buffer {
    const toSeq = this.size - 1
    const { strand, agent } = this
    const publicKey = /\nkey ([0-9a-f]{64})\n/.exec(this.records[0]?.header ?? '')?.[1] ?? ''
    const records = this.records.map(({ header: h, salt, body, sig, sealedBy }, seq) => {
      const seal = sig === undefined ? { sealedBy } : { sig }
      if (withheld.includes(seq)) return recordLine({ h, ...seal, withheld: true })
      return recordLine({ h, ...seal, ...(!erased.includes(seq) && { salt, body }) })
    })
    const trailer = {
      chainHead: this.records.at(-1)?.hash ?? '',
      records: this.size,
      checkpoint: this.note(),
    }
    const lines = [
      manifestLine({ agent, strand, publicKey, fromSeq: 0, toSeq, recordCount: toSeq }),
      ...records,
      trailerLine({ ...trailer, ...(whole && { recordCount: toSeq }) }),
    ]
    return Buffer.from(lines.map((line) => `${line}\n`).join(''))
  }
}

/** The parts that an export leaves out. */
interface Hidden {
  erased?: readonly number[]
  withheld?: readonly number[]
  /** Whether the trailer says that the strand has no further records. */
  whole?: boolean
}

/**
 * A possibly changed history, and the expected result of a verifier with an earlier checkpoint and the log.
 */
export interface ShownHistory {
  name: string
  file: Buffer
  publicKey: string
  strand: string
  note: string
  log?: Buffer
  logKey?: string
  /** Whether the shown history begins with the original one. */
  ok: boolean
}

/** The original history: a strand of some records, some of them sealed. */
function history(records: number, sealed: boolean): ForgedStrand {
  const strand = new ForgedStrand('ledger', 1)
  for (let n = 1; n < records; n += 1) {
    const sealedBy = sealed && n % 3 !== 0 && n + (3 - (n % 3)) < records ? n + (3 - (n % 3)) : undefined
    strand.write(`{"n":${n}}`, sealedBy === undefined ? {} : { sealedBy })
  }
  return strand
}

/** The kinds of histories. The first four are honest. */
export const kinds = [
  'honest',
  'grown',
  'rotated',
  'erased',
  'rewound',
  'forked',
  'rewritten',
  'reordered',
  're-sealed',
  'hidden',
  'another strand',
  'log record hidden',
  'log record withheld',
  'log rewound',
  'log forked',
  'log silent',
] as const

/**
 * Draws an original history with a checkpoint, and the history of a given kind that the operator shows later.
 */
export function shownHistories(kind: (typeof kinds)[number]): fc.Arbitrary<ShownHistory> {
  const drawn = fc.record({
    kind: fc.constant(kind),
    records: fc.integer({ min: 8, max: 16 }),
    sealed: fc.boolean(),
    pick: fc.nat(),
    byLog: fc.boolean(),
    loggedSizes: fc.uniqueArray(fc.integer({ min: 2, max: 7 }), { minLength: 1, maxLength: 3 }),
  })
  return drawn.map(lieOf)
}

interface Drawn {
  kind: (typeof kinds)[number]
  records: number
  sealed: boolean
  pick: number
  byLog: boolean
  loggedSizes: number[]
}

function lieOf({ kind, records, sealed, pick, byLog, loggedSizes }: Drawn): ShownHistory {
  const original = history(records, sealed)
  const ofLog = kind.startsWith('log')
  const log = new ForgedStrand(LOG, 9)
  for (const size of loggedSizes.toSorted((a, b) => a - b)) log.logHeads(original.head(size))
  log.logHeads(original.head(records))
  // The first changed record; genesis is not changed.
  const at = 1 + (pick % (records - 1))
  const { strand: shown, hidden = {} } = shownOf({ kind, records, sealed, at }, original)
  const shownLog = logOf(kind, log, { pick, shown, original })
  const { publicKey, strand } = original
  const common = { name: kind, publicKey, strand, file: shown.export(hidden) }
  const ok = kind === 'honest' || kind === 'grown' || kind === 'rotated' || kind === 'erased'
  if (!byLog && !ofLog) return { ...common, note: original.note(), ok }
  return { ...common, note: log.note(), log: shownLog, logKey: log.publicKey, ok }
}

/** The history that the operator shows instead of the original one. */
function shownOf(
  { kind, records, sealed, at }: { kind: Drawn['kind']; records: number; sealed: boolean; at: number },
  original: ForgedStrand,
): { strand: ForgedStrand; hidden?: Hidden } {
  // A fork begins after a signed record, so that no sealed record is pending.
  const from = Math.max(
    1,
    original.records.findLastIndex(({ sig }, seq) => seq < at && sig !== undefined) + 1,
  )
  const extend = (strand: ForgedStrand) => {
    while (strand.size < records + 2) strand.write(`{"other":${strand.size}}`)
    return strand
  }
  switch (kind) {
    case 'grown':
      return { strand: extend(original.fork(records)) }
    case 'rotated':
      return { strand: original.fork(records).rotate(2).write('{}') }
    case 'erased':
      return { strand: original.fork(records).erase(at), hidden: { erased: [at] } }
    case 'rewound':
      return { strand: original.fork(from) }
    case 'forked':
      return { strand: extend(original.fork(from)) }
    case 'rewritten':
      return { strand: extend(original.fork(from).rotate(3)) }
    case 'reordered': {
      const strand = original.fork(1)
      const bodies = original.records.slice(1).map(({ body }) => body)
      for (const body of bodies.reverse()) strand.write(body)
      return { strand }
    }
    case 're-sealed': {
      const strand = history(records, !sealed)
      // Seals are not part of headers, so that only a changed body changes the history.
      return { strand: strand.fork(1).write('{"re":"sealed"}', { sealedBy: 2 }).write('{}') }
    }
    case 'hidden':
      return { strand: original, hidden: { erased: [at] } }
    case 'another strand':
      return {
        strand: extend(
          new ForgedStrand('ledger', 1)
            .fork(0)
            .write(original.records[0]?.body.replace('"free"', '"governed"') ?? '', { type: 'sys/genesis' }),
        ),
      }
    case 'log record hidden':
    case 'log record withheld':
    case 'log rewound':
    case 'log forked':
    case 'log silent':
      return { strand: original.fork(Math.max(2, from)) }
    default:
      return { strand: original }
  }
}

/** The log that the operator shows. */
function logOf(
  kind: Drawn['kind'],
  log: ForgedStrand,
  { shown, original }: { pick: number; shown: ForgedStrand; original: ForgedStrand },
): Buffer {
  const last = log.size - 1
  switch (kind) {
    case 'grown':
    case 'rotated':
      return log.fork(log.size).logHeads(shown.head(shown.size)).export()
    case 'forked':
    case 'rewritten':
      // The log continues with the size of the changed history, as a server without checks would write it.
      return log.fork(log.size).logHeads(shown.head(shown.size)).export()
    case 'log record hidden':
      return log.export({ erased: [last], whole: false })
    case 'log record withheld':
      return log.export({ withheld: [last] })
    case 'log rewound':
      return log.fork(last).export()
    case 'log forked':
      return log.fork(last).logHeads(shown.head(shown.size)).export()
    case 'log silent':
      return log
        .fork(last)
        .logHeads(['ab'.repeat(32), 3, original.strand])
        .export()
    default:
      return log.export()
  }
}
