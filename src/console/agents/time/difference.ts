import type { ServiceClient } from '../../../client/index.js'
import { webCryptoJobs } from '../../../client/webcrypto.js'
import { LINE_BYTES_MAX } from '../../../proof/export-lines.js'
import { type ReadRecord, bodyMembers, readLineText } from '../../../proof/record.js'
import { counted } from '../../parts/format.js'
import { fails, holds, type Verdict } from '../../parts/result.js'
import { checkInWorker } from '../../parts/proof/checker.js'
import { type RecordRow, rowOf } from '../../parts/records/record-row.js'
import type { MomentRead } from './moment.js'

/** The kinds of changes between two moments. */
export const changeKinds = [
  'added',
  'deleted',
  'restored',
  'erased',
  'of the agent',
  'of edges',
  'steps',
] as const

export type ChangeKind = (typeof changeKinds)[number]

export interface ChangeRecord {
  row: RecordRow
  /** The seq of the record that was deleted, restored or erased; undefined for other changes. */
  target: number | undefined
}

/** The number of changes of one kind, and the newest of them. */
export interface Changes {
  count: number
  newest: ChangeRecord[]
}

/** The changes between two moments of a strand. */
export interface Difference {
  changes: Record<ChangeKind, Changes>
  verdict: Verdict
}

/** The most changes of a kind that are shown. */
const SHOWN_CHANGES = 100

/** The parameters of a comparison; `from` is the earlier moment. */
export interface Between {
  service: ServiceClient
  agent: string
  strand: string
  from: MomentRead
  to: MomentRead
  onProgress: (records: number) => void
  signal: AbortSignal
}

/**
 * Reads the records between two moments. They have to link the head of the earlier moment to the head of the
 * later one, so that no record is missing and none was inserted.
 * @throws errors of the export; Error if the worker cannot run; the signal's reason
 */
export async function readDifference(between: Between): Promise<Difference> {
  const { service, agent, strand, from, to, onProgress, signal } = between
  const reader = new DifferenceReader(from.seq, to.seq)
  const stream = await service.exportStrand({ agent, fromSeq: from.seq, toSeq: to.seq, signal })
  const { result } = await checkInWorker({
    stream: stream.pipeThrough(reader.watch()),
    options: { strand, firstHash: from.chainHead },
    // The worker reports every thousandth record.
    onProgress,
    signal,
  })
  const { changes } = reader
  const not = (reason: string, seq = to.seq): Difference => ({
    changes,
    verdict: fails(`record ${seq} of ${agent}: ${reason}`),
  })
  if (!result.ok) return not(result.reason, result.seq)
  const { last } = reader
  const reached = last && (await webCryptoJobs().hash(last.leaf))
  if (reached !== to.chainHead) return not('the records do not lead to the chain head of the later moment')
  const zone = reader.zone ?? from.zone
  if (to.zone !== zone) return not(`the server reports zone ${to.zone}, but the records say ${zone}`)
  const faulty = [from, to].find(({ check }) => check.verdict.outcome === 'failed')
  if (faulty !== undefined) return not('this moment is not verified', faulty.seq)
  const size = counted(to.seq - from.seq, 'record')
  const text = `the ${size} of ${agent} after record ${from.seq}, up to record ${to.seq}, are complete, signed and unchanged`
  const isKeyTrusted = [from, to].every(({ check }) => check.verdict.outcome === 'verified')
  return { changes, verdict: holds(text, isKeyTrusted) }
}

/** Collects changes from the lines of an export while they pass through. */
class DifferenceReader {
  readonly changes: Record<ChangeKind, Changes> = {
    added: none(),
    deleted: none(),
    restored: none(),
    erased: none(),
    'of the agent': none(),
    'of edges': none(),
    steps: none(),
  }
  readonly #fromSeq: number
  readonly #toSeq: number
  #next: number
  #partialLine = ''
  /** The last record of the later moment. An export can extend to the record that seals it. */
  last: ReadRecord | undefined

  /** The zone of the last sys/zone record. */
  zone: string | undefined

  constructor(fromSeq: number, toSeq: number) {
    this.#fromSeq = fromSeq
    this.#toSeq = toSeq
    this.#next = fromSeq
  }

  /**
   * A stream that passes bytes on unchanged. The check of the same bytes detects invalid text and overlong
   * lines.
   */
  watch(): TransformStream<Uint8Array, Uint8Array> {
    const decoder = new TextDecoder()
    return new TransformStream({
      transform: (bytes, controller) => {
        controller.enqueue(bytes)
        const lines = (this.#partialLine + decoder.decode(bytes, { stream: true })).split('\n')
        this.#partialLine = (lines.pop() ?? '').slice(0, LINE_BYTES_MAX)
        for (const line of lines) this.#readLine(line)
      },
    })
  }

  #readLine(text: string): void {
    const line = readLineText(text)
    if (line === undefined || !('record' in line)) return
    const seq = this.#next
    this.#next += 1
    if (seq === this.#toSeq) this.last = line.record
    // The first record is the last one of the earlier moment.
    if (seq > this.#fromSeq && seq <= this.#toSeq) this.#addChange(line.record)
  }

  #addChange(record: ReadRecord): void {
    const row = rowOf(record)
    if (row === undefined) return
    const kind = kindOf(row.type)
    const changes = this.changes[kind]
    // Application records can have a member of the same name.
    const isOfRecord = kind === 'deleted' || kind === 'restored' || kind === 'erased'
    const { target_seq: target } = isOfRecord ? bodyMembers(record.content) : {}
    if (row.type === 'sys/zone') this.zone = String(bodyMembers(record.content)['zone'])
    changes.count += 1
    changes.newest.push({ row, target: typeof target === 'number' ? target : undefined })
    if (changes.newest.length > SHOWN_CHANGES) changes.newest.shift()
  }
}

function none(): Changes {
  return { count: 0, newest: [] }
}

const kinds: Record<string, ChangeKind> = {
  'sys/tombstone': 'deleted',
  'sys/restore': 'restored',
  'sys/erase': 'erased',
  'sys/zone': 'of the agent',
  'sys/policy': 'of the agent',
  'sys/key_rotate': 'of the agent',
}

function kindOf(type: string): ChangeKind {
  const kind = Object.hasOwn(kinds, type) ? kinds[type] : undefined
  if (kind !== undefined) return kind
  if (type.startsWith('edge/')) return 'of edges'
  return type.startsWith('sys/') ? 'steps' : 'added'
}
