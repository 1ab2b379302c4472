import type { DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf'
import { RefusedError, refuse, refusalOf, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits/limits.js'
import type { OtlpSignal } from '../wire/otlp.js'
import { assertAtMost, isObject, messageOf, schemas, type Field, type OtlpMessage } from './messages.js'
import type { OtlpPart, OtlpTask, RefusedRecord } from './tasks.js'

/** The fields on the way from a request to its records. */
const paths: Record<OtlpSignal, { resources: Field; scopes: Field; records: Field }> = {
  logs: {
    resources: { number: 1, name: 'resourceLogs' },
    scopes: { number: 2, name: 'scopeLogs' },
    records: { number: 2, name: 'logRecords' },
  },
  traces: {
    resources: { number: 1, name: 'resourceSpans' },
    scopes: { number: 2, name: 'scopeSpans' },
    records: { number: 2, name: 'spans' },
  },
}

/** The fields beside them, the same for logs and spans. */
const beside = {
  resource: { number: 1, name: 'resource' },
  scope: { number: 1, name: 'scope' },
  schemaUrl: { number: 3, name: 'schemaUrl' },
}

const types: Record<OtlpSignal, string> = { logs: 'otel/log', traces: 'otel/span' }

/** What the lines of one scope have in common. */
interface Around {
  agent: string
  /** The text of a line before and after the members of the record. */
  prefix: string
  suffix: string
}

/**
 * Writes a part of a request as lines `{agent, data, type}`: `data` is the record with its resource and
 * scope.
 */
export class OtlpLineWriter {
  readonly #task: OtlpTask
  readonly #lines: string[] = []
  #linesBytes = 0
  /** Bytes of records that were read for this part. */
  #readBytes = 0
  readonly #refused: Omit<RefusedRecord, 'bytes'>[] = []
  /** The bytes of each refused record; empty if they are not stored. */
  readonly #kept: Uint8Array[] = []
  #keptBytes = 0

  constructor(task: OtlpTask) {
    this.#task = task
  }

  /** @throws RefusedError if the body is not a request, or larger than one may be */
  write(): OtlpPart {
    const { body, encoding, signal, from } = this.#task
    const { resources, scopes, records } = paths[signal]
    const ends = from?.ends ?? new Map<number, number>()
    const request = messageOf(encoding, body, { isChecked: from !== undefined, ends })
    const agent = from === undefined ? this.#check(request) : undefined
    let done = from?.done ?? 0
    // Only the first lists of a part continue at an offset.
    const [...first] = from?.offsets ?? []
    for (const ofResource of request.all(resources, first.shift())) {
      let resource: { agent: string; text: string } | Refusal | undefined
      for (const ofScope of ofResource.all(scopes, first.shift())) {
        let around: Around | Refusal | undefined
        for (const record of ofScope.all(records, first.shift())) {
          resource ??= this.#resourceOf(ofResource)
          around ??= 'code' in resource ? resource : this.#aroundOf(resource, ofScope)
          if (!this.#addRecord(record, around, done + 1)) {
            const offsets = [ofResource.offset, ofScope.offset, record.offset]
            return { ...this.#part(agent), next: { done, offsets, ends }, body }
          }
          done++
        }
      }
    }
    return this.#part(agent)
  }

  /**
   * Checks the whole request, because nothing of an invalid one is written: its envelope, and how often it
   * repeats resources and scopes, of which a small request could also have millions without records.
   * @returns the agent, if all lines have the same
   */
  #check(request: OtlpMessage): string | undefined {
    const { resources, scopes, records } = paths[this.#task.signal]
    const agents = new Set<string>()
    let [groups, count, bytes] = [0, 0, 0]
    for (const ofResource of request.all(resources)) {
      assertAtMost(limits.otlpGroupsMax, ++groups, 'resources and scopes')
      const resource = this.#resourceOf(ofResource)
      if ('agent' in resource) agents.add(resource.agent)
      for (const ofScope of ofResource.all(scopes)) {
        assertAtMost(limits.otlpGroupsMax, ++groups, 'resources and scopes')
        let around: Around | Refusal | undefined
        let aroundBytes = 0
        for (const _record of ofScope.all(records)) {
          assertAtMost(limits.otlpRecordsMax, ++count, 'records')
          around ??= 'code' in resource ? resource : this.#aroundOf(resource, ofScope)
          if (aroundBytes === 0 && 'prefix' in around)
            aroundBytes = Buffer.byteLength(around.prefix) + Buffer.byteLength(around.suffix)
          bytes += aroundBytes
          assertAtMost(
            limits.otlpRepeatedBytesMax,
            bytes,
            'bytes of resources and scopes, with those of each record',
          )
        }
      }
    }
    const [agent, ...others] = agents
    return others.length === 0 ? agent : undefined
  }

  #part(agent: string | undefined): OtlpPart {
    const lines = Buffer.allocUnsafeSlow(this.#linesBytes)
    lines.write(this.#lines.join(''))
    const kept = Buffer.allocUnsafeSlow(this.#keptBytes)
    let at = 0
    const refused = this.#refused.map((record, index) => {
      const bytes = this.#kept[index] ?? noBytes
      kept.set(bytes, at)
      at += bytes.length
      return { ...record, bytes: kept.subarray(at - bytes.length, at) }
    })
    return { lines, refused, ...(agent !== undefined && { agent }) }
  }

  #resourceOf(message: OtlpMessage): { agent: string; text: string } | Refusal {
    return attempt(() => {
      const resource = this.#jsonOf(message.one(beside.resource), schemas.resource)
      const { agent = agentOf(resource) } = this.#task
      const schemaUrl = message.text(beside.schemaUrl)
      return { agent, text: memberText('resource', resource) + memberText('resourceSchemaUrl', schemaUrl) }
    })
  }

  #aroundOf({ agent, text }: { agent: string; text: string }, ofScope: OtlpMessage): Around | Refusal {
    return attempt(() => {
      const scope = this.#jsonOf(ofScope.one(beside.scope), schemas.scope)
      const suffix =
        text + memberText('scope', scope) + memberText('scopeSchemaUrl', ofScope.text(beside.schemaUrl))
      const prefix = `{"agent":${JSON.stringify(agent)},"type":"${types[this.#task.signal]}","data":{`
      return { agent, prefix, suffix: `${suffix}}}\n` }
    })
  }

  /** @returns false if the part is full; the record then belongs to the next one */
  #addRecord(record: OtlpMessage, around: Around | Refusal, number: number): boolean {
    const size = record.bytes.length
    const isFull =
      this.#readBytes + size > limits.otlpPartReadBytesMax ||
      this.#refused.length >= limits.otlpPartRefusedMax
    if (isFull && this.#lines.length > 0) return false
    this.#readBytes += size
    const line = 'code' in around ? around : this.#lineOf(record, around)
    if (typeof line === 'string') return this.#add(line)
    const bytes = this.#task.keeps && size <= limits.ingestAtomicBytesMax ? record.bytes : noBytes
    if (this.#keptBytes > 0 && this.#keptBytes + bytes.length > limits.ingestAtomicBytesMax) return false
    if (!this.#add('\n')) return false
    const { code, detail } = line
    const { agent = '' } = 'code' in around ? this.#task : around
    this.#refused.push({ line: number, agent, code, detail })
    this.#kept.push(bytes)
    this.#keptBytes += bytes.length
    return true
  }

  #lineOf(record: OtlpMessage, { prefix, suffix }: Around): string | Refusal {
    const { signal } = this.#task
    return attempt(() => {
      const json = this.#jsonOf(record, schemas[signal])
      if (signal === 'traces') checkSpan(json)
      const members = textOf(json).slice(1, -1)
      const line = prefix + members + (members === '' ? suffix.replace(/^,/, '') : suffix)
      this.#checkBytes(Buffer.byteLength(line))
      return line
    })
  }

  /** Decodes a message of which a record consists, unless no record could hold it. */
  #jsonOf(message: OtlpMessage, schema: DescMessage): JsonObject
  #jsonOf(message: OtlpMessage | undefined, schema: DescMessage): JsonObject | undefined
  #jsonOf(message: OtlpMessage | undefined, schema: DescMessage): JsonObject | undefined {
    if (message === undefined) return undefined
    this.#checkBytes(message.bytes.length)
    return message.json(schema)
  }

  #checkBytes(bytes: number): void {
    const { recordBytesMax } = this.#task
    if (bytes <= recordBytesMax) return
    const detail = `Expected a record of at most ${recordBytesMax} bytes, got ${bytes}`
    throw new RefusedError(refuse('too_large', detail))
  }

  #add(line: string): boolean {
    const bytes = this.#linesBytes + Buffer.byteLength(line)
    if (bytes > this.#task.linesBytesMax) return false
    this.#linesBytes = bytes
    this.#lines.push(line)
    return true
  }
}

/** Checks the ids that a span needs. Those of a log record may be invalid: then it belongs to no trace (OTLP). */
function checkSpan(span: JsonObject): void {
  for (const [name, bytes] of [
    ['traceId', 16],
    ['spanId', 8],
  ] as const) {
    const id = String(span[name] ?? '')
    if (id.length === 2 * bytes && /[1-9a-f]/.test(id)) continue
    const detail = `Expected a span with a ${name} of ${bytes} bytes, not all zero`
    throw new RefusedError(refuse('validation_failed', detail))
  }
}

const noBytes = new Uint8Array(0)

/** A member after others; empty if its value is. */
function memberText(name: string, value: JsonObject | string | undefined): string {
  return value === undefined || value === '' ? '' : `,"${name}":${textOf(value)}`
}

/** Digits of a double from which JSON.stringify could write an integer that strict parsers refuse. */
const wholeDouble = /"doubleValue":-?\d{16,}(?=[,}])/g

/** JSON with a fraction for large doubles: docs/FORMAT.md refuses large integers, but not large doubles. */
function textOf(value: JsonObject | string): string {
  return JSON.stringify(value).replaceAll(wholeDouble, '$&.0')
}

function attempt<Found>(read: () => Found): Found | Refusal {
  try {
    return read()
  } catch (error) {
    return refusalOf(error)
  }
}

/** The most characters of an agent's name. */
const NAME_CHARS = 128

/**
 * The agent that a resource names: its `service.name`, of which each character that the name of an agent
 * cannot have becomes `_`; `unknown_service` without one.
 */
function agentOf(resource: JsonObject | undefined): string {
  const attributes = resource?.['attributes']
  const names = Array.isArray(attributes) ? attributes.map(serviceNameOf) : []
  const name = names.find((text) => text !== '') ?? 'unknown_service'
  return name.replaceAll(/[^A-Za-z0-9_.-]|^[.-]/gu, '_').slice(0, NAME_CHARS)
}

function serviceNameOf(attribute: JsonValue): string {
  if (!isObject(attribute) || attribute['key'] !== 'service.name' || !isObject(attribute['value'])) return ''
  const { stringValue } = attribute['value']
  return typeof stringValue === 'string' ? stringValue : ''
}
