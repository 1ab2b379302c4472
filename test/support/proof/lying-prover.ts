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
 * An operator who holds every key, of strands and of the log: what they make is signed and chained as it should be, and only
 * what somebody else has kept can show that it is another history. The oracle says what can be shown.
 */

const keysOf = (byte: number) => keyPairFromSeed(Buffer.alloc(32, byte))
const LOG = 'server::log'

/** A record that was made. */
interface Made {
  header: string
  salt: string
  body: string
  hash: string
  sig: string | undefined
  sealedBy: number | undefined
}

/** A strand in the making, by whoever holds its keys. */
export class Forged {
  readonly agent: string
  readonly made: Made[]
  #keys: KeyPair

  constructor(agent: string, byte: number, made?: readonly Made[]) {
    this.agent = agent
    this.#keys = keysOf(byte)
    this.made = [...(made ?? [])]
    if (made !== undefined) return
    const publicKey = this.#keys.publicKey
    this.write(genesisBody({ agent, createdAtMs: byte, publicKey, zone: 'free' }), { type: 'sys/genesis' })
  }

  get strand(): string {
    return this.made[0]?.hash ?? zeroHash
  }

  get size(): number {
    return this.made.length
  }

  get publicKey(): string {
    return this.#keys.publicKey
  }

  /** Another history that begins with the first `size` records of this one. */
  fork(size: number): Forged {
    return new Forged(this.agent, this.#byte(), this.made.slice(0, size))
  }

  #byte(): number {
    for (let byte = 1; byte < 256; byte += 1) if (keysOf(byte).publicKey === this.publicKey) return byte
    throw new Error('Expected a key of one byte')
  }

  write(body: string, { type = 'record', sealedBy }: { type?: string; sealedBy?: number } = {}): this {
    const seq = this.size
    const salt = Buffer.from(recordHash(`${this.agent} ${seq} ${body}`), 'hex').subarray(0, 16)
    const header = headerText({
      strand: this.strand,
      key: this.publicKey,
      seq,
      prev: this.made.at(-1)?.hash ?? zeroHash,
      hlc: `${(1_000 + seq).toString(16).padStart(12, '0')}-0000`,
      type,
      body: bodyCommitment(salt, Buffer.from(body)),
    })
    const sig = sealedBy === undefined ? signText(this.#keys.secretKey, header).toString('hex') : undefined
    this.made.push({ header, salt: salt.toString('hex'), body, hash: recordHash(header), sig, sealedBy })
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
    const target = this.made[seq]?.hash ?? zeroHash
    return this.write(canonicalJson({ principal: 'root', target, target_seq: seq }), { type: 'sys/erase' })
  }

  tell(...heads: [string, number, string][]): this {
    return this.write(canonicalJson({ clocks: [], heads }), { type: 'sys/heads' })
  }

  /** What the log would tell of the first `size` records. */
  head(size: number): [string, number, string] {
    return [this.strand, size, this.made[size - 1]?.hash ?? zeroHash]
  }

  note(size = this.size, keys = this.#keys): string {
    const leaves = this.made.slice(0, size).map(({ hash }) => Buffer.from(hash, 'hex'))
    const root = treeRoot(leaves.length, { leaves: (start, end) => leaves.slice(start, end) })
    const rootHex = Buffer.from(root).toString('hex')
    return signCheckpoint({ origin: `strandfast/${this.strand}`, size, rootHex }, keys)
  }

  /** The whole export, with bodies left out as whoever makes it likes. */
  export({ erased = [], withheld = [], whole = true }: Hidden = {}): Buffer {
    const toSeq = this.size - 1
    const { strand, agent } = this
    const publicKey = /\nkey ([0-9a-f]{64})\n/.exec(this.made[0]?.header ?? '')?.[1] ?? ''
    const records = this.made.map(({ header: h, salt, body, sig, sealedBy }, seq) => {
      const seal = sig === undefined ? { sealedBy } : { sig }
      if (withheld.includes(seq)) return recordLine({ h, ...seal, withheld: true })
      return recordLine({ h, ...seal, ...(!erased.includes(seq) && { salt, body }) })
    })
    const trailer = { chainHead: this.made.at(-1)?.hash ?? '', records: this.size, checkpoint: this.note() }
    const lines = [
      manifestLine({ agent, strand, publicKey, fromSeq: 0, toSeq, recordCount: toSeq }),
      ...records,
      trailerLine({ ...trailer, ...(whole && { recordCount: toSeq }) }),
    ]
    return Buffer.from(lines.map((line) => `${line}\n`).join(''))
  }
}

/** What an export leaves out. */
interface Hidden {
  erased?: readonly number[]
  withheld?: readonly number[]
  /** Whether its trailer says that nothing is behind its end. */
  whole?: boolean
}

/** A lie, or none, and what a verifier with a kept checkpoint and the log has to say of it. */
export interface Lie {
  name: string
  file: Buffer
  publicKey: string
  strand: string
  note: string
  log?: Buffer
  logKey?: string
  /** Whether the history that is shown is the one that was seen. */
  ok: boolean
}

/** The honest history that somebody saw: a strand of some records, some sealed, one rotation, one erasure. */
function history(records: number, sealed: boolean): Forged {
  const strand = new Forged('ledger', 1)
  for (let n = 1; n < records; n += 1) {
    const sealedBy = sealed && n % 3 !== 0 && n + (3 - (n % 3)) < records ? n + (3 - (n % 3)) : undefined
    strand.write(`{"n":${n}}`, sealedBy === undefined ? {} : { sealedBy })
  }
  return strand
}

/** What an operator may show: the first four are honest. */
export const kinds = [
  'honest',
  'grown',
  'rotated',
  'erased',
  'rewound',
  'forked',
  'retold',
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

/** Draws a history that somebody kept a checkpoint of, and what an operator with every key shows afterwards, of one kind. */
export function lies(kind: (typeof kinds)[number]): fc.Arbitrary<Lie> {
  const drawn = fc.record({
    kind: fc.constant(kind),
    records: fc.integer({ min: 8, max: 16 }),
    sealed: fc.boolean(),
    pick: fc.nat(),
    byLog: fc.boolean(),
    tells: fc.uniqueArray(fc.integer({ min: 2, max: 7 }), { minLength: 1, maxLength: 3 }),
  })
  return drawn.map(lieOf)
}

interface Drawn {
  kind: (typeof kinds)[number]
  records: number
  sealed: boolean
  pick: number
  byLog: boolean
  tells: number[]
}

function lieOf({ kind, records, sealed, pick, byLog, tells }: Drawn): Lie {
  const seen = history(records, sealed)
  const ofLog = kind.startsWith('log')
  const log = new Forged(LOG, 9)
  for (const size of tells.toSorted((a, b) => a - b)) log.tell(seen.head(size))
  log.tell(seen.head(records))
  // Of the records that were seen, the first one that is another; genesis stays.
  const at = 1 + (pick % (records - 1))
  const { strand: shown, hidden = {} } = shownOf({ kind, records, sealed, at }, seen)
  const told = logOf(kind, log, { pick, shown, seen })
  const common = { name: kind, publicKey: seen.publicKey, strand: seen.strand, file: shown.export(hidden) }
  const ok = kind === 'honest' || kind === 'grown' || kind === 'rotated' || kind === 'erased'
  if (!byLog && !ofLog) return { ...common, note: seen.note(), ok }
  return { ...common, note: log.note(), log: told, logKey: log.publicKey, ok }
}

/** What is shown in place of what was seen. */
function shownOf(
  { kind, records, sealed, at }: { kind: Drawn['kind']; records: number; sealed: boolean; at: number },
  seen: Forged,
): { strand: Forged; hidden?: Hidden } {
  // A fork begins behind a signed record, where no seal waits.
  const from = Math.max(1, seen.made.findLastIndex(({ sig }, seq) => seq < at && sig !== undefined) + 1)
  const goOn = (strand: Forged) => {
    while (strand.size < records + 2) strand.write(`{"other":${strand.size}}`)
    return strand
  }
  switch (kind) {
    case 'grown':
      return { strand: goOn(seen.fork(records)) }
    case 'rotated':
      return { strand: seen.fork(records).rotate(2).write('{}') }
    case 'erased':
      return { strand: seen.fork(records).erase(at), hidden: { erased: [at] } }
    case 'rewound':
      return { strand: seen.fork(from) }
    case 'forked':
      return { strand: goOn(seen.fork(from)) }
    case 'retold':
      return { strand: goOn(seen.fork(from).rotate(3)) }
    case 'reordered': {
      const strand = seen.fork(1)
      const bodies = seen.made.slice(1).map(({ body }) => body)
      for (const body of bodies.reverse()) strand.write(body)
      return { strand }
    }
    case 're-sealed': {
      const strand = history(records, !sealed)
      // The same headers: sealing is in no header, so only another body makes another history.
      return { strand: strand.fork(1).write('{"re":"sealed"}', { sealedBy: 2 }).write('{}') }
    }
    case 'hidden':
      return { strand: seen, hidden: { erased: [at] } }
    case 'another strand':
      return {
        strand: goOn(
          new Forged('ledger', 1)
            .fork(0)
            .write(seen.made[0]?.body.replace('"free"', '"governed"') ?? '', { type: 'sys/genesis' }),
        ),
      }
    case 'log record hidden':
    case 'log record withheld':
    case 'log rewound':
    case 'log forked':
    case 'log silent':
      return { strand: seen.fork(Math.max(2, from)) }
    default:
      return { strand: seen }
  }
}

/** What is shown for a log. */
function logOf(
  kind: Drawn['kind'],
  log: Forged,
  { shown, seen }: { pick: number; shown: Forged; seen: Forged },
): Buffer {
  const last = log.size - 1
  switch (kind) {
    case 'grown':
    case 'rotated':
      return log.fork(log.size).tell(shown.head(shown.size)).export()
    case 'forked':
    case 'retold':
      // Told on with the size of the other history, as a server would that compares nothing.
      return log.fork(log.size).tell(shown.head(shown.size)).export()
    case 'log record hidden':
      return log.export({ erased: [last], whole: false })
    case 'log record withheld':
      return log.export({ withheld: [last] })
    case 'log rewound':
      return log.fork(last).export()
    case 'log forked':
      return log.fork(last).tell(shown.head(shown.size)).export()
    case 'log silent':
      return log
        .fork(last)
        .tell(['ab'.repeat(32), 3, seen.strand])
        .export()
    default:
      return log.export()
  }
}
