import type { DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf'
import { RefusedError, refuse, refusalOf, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import type { OtlpLines, OtlpSignal, OtlpTask, RefusedRecord } from '../../src/protocol/otlp-tasks.js'
import { isObject, messageOf, schemas, type Field, type OtlpMessage } from './messages.js'

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

const noBytes = new Uint8Array(0)

/** What the lines of one scope have in common. */
interface Around {
  agent: string
  /** The text of a line before and after the members of the record. */
  prefix: string
  suffix: string
}

/** Writes a request as lines `{agent, data, type}`: `data` is the record with its resource and scope. */
export class OtlpLineWriter {
  readonly #task: OtlpTask
  readonly #lines: string[] = []
  #chars = 0
  #groups = 0
  readonly #agents = new Set<string>()
  readonly #refused: RefusedRecord[] = []

  constructor(task: OtlpTask) {
    this.#task = task
  }

  /** @throws RefusedError if the body is not a request, or its lines would take too much memory */
  write(): OtlpLines {
    const { body, encoding, signal } = this.#task
    const { resources, scopes, records } = paths[signal]
    for (const ofResource of messageOf(encoding, body).all(resources)) {
      const resource = this.#resourceOf(ofResource)
      for (const ofScope of ofResource.all(scopes)) {
        const around = 'code' in resource ? resource : this.#aroundOf(resource, ofScope)
        for (const record of ofScope.all(records)) this.#addRecord(record, around)
      }
    }
    const [agent, ...others] = this.#agents
    return {
      lines: inSharedMemory(this.#lines.join('')),
      refused: this.#refused,
      ...(agent !== undefined && others.length === 0 && { agent }),
    }
  }

  #resourceOf(message: OtlpMessage): { agent: string; text: string } | Refusal {
    this.#countGroup()
    return attempt(() => {
      const resource = this.#jsonOf(message.one(beside.resource), schemas.resource)
      const { agent = agentOf(resource) } = this.#task
      const schemaUrl = message.text(beside.schemaUrl)
      this.#agents.add(agent)
      return { agent, text: memberText('resource', resource) + memberText('resourceSchemaUrl', schemaUrl) }
    })
  }

  #aroundOf({ agent, text }: { agent: string; text: string }, ofScope: OtlpMessage): Around | Refusal {
    this.#countGroup()
    return attempt(() => {
      const scope = this.#jsonOf(ofScope.one(beside.scope), schemas.scope)
      const suffix =
        text + memberText('scope', scope) + memberText('scopeSchemaUrl', ofScope.text(beside.schemaUrl))
      const prefix = `{"agent":${JSON.stringify(agent)},"type":"${types[this.#task.signal]}","data":{`
      return { agent, prefix, suffix: `${suffix}}}\n` }
    })
  }

  #addRecord(record: OtlpMessage, around: Around | Refusal): void {
    const line = 'code' in around ? around : this.#lineOf(record, around)
    if (typeof line === 'string') this.#add(line)
    else {
      const { agent } = 'code' in around ? this.#task : around
      this.#refuse(record, { agent: agent ?? '', refusal: line })
    }
  }

  #lineOf(record: OtlpMessage, { prefix, suffix }: Around): string | Refusal {
    const { recordBytesMax, signal } = this.#task
    return attempt(() => {
      const json = this.#jsonOf(record, schemas[signal])
      if (signal === 'traces') checkSpan(json)
      const members = textOf(json).slice(1, -1)
      const line = prefix + members + (members === '' ? suffix.replace(/^,/, '') : suffix)
      if (Buffer.byteLength(line) > recordBytesMax) throw tooLarge(recordBytesMax)
      return line
    })
  }

  /** Decodes a message of which a record consists, unless no record could hold it. */
  #jsonOf(message: OtlpMessage, schema: DescMessage): JsonObject
  #jsonOf(message: OtlpMessage | undefined, schema: DescMessage): JsonObject | undefined
  #jsonOf(message: OtlpMessage | undefined, schema: DescMessage): JsonObject | undefined {
    const { recordBytesMax } = this.#task
    if (message !== undefined && message.bytes.length > recordBytesMax) throw tooLarge(recordBytesMax)
    return message?.json(schema)
  }

  /** Counts a resource or scope, of which a small request could have millions without records. */
  #countGroup(): void {
    this.#groups++
    if (this.#groups > limits.otlpGroupsMax)
      throw new RefusedError(
        refuse('too_large', `Expected at most ${limits.otlpGroupsMax} resources and scopes`),
      )
  }

  #refuse(record: OtlpMessage, { agent, refusal }: { agent: string; refusal: Refusal }): void {
    if (this.#refused.length >= limits.otlpRefusedMax) {
      throw new RefusedError(
        refuse('too_many_bad_lines', `More than ${limits.otlpRefusedMax} records are invalid`),
      )
    }
    const { code, detail } = refusal
    const bytes = this.#task.keeps ? record.bytes : noBytes
    this.#add('\n')
    this.#refused.push({ line: this.#lines.length, agent, code, detail, bytes })
  }

  #add(line: string): void {
    this.#chars += line.length
    if (this.#chars > limits.otlpLinesBytesMax) {
      const detail = `Expected records of at most ${limits.otlpLinesBytesMax} bytes, with the resource in each`
      throw new RefusedError(refuse('too_large', `${detail}: send smaller batches`))
    }
    this.#lines.push(line)
  }
}

function tooLarge(recordBytesMax: number): RefusedError {
  const detail = `Expected a record of at most ${recordBytesMax} bytes, with its resource and scope`
  return new RefusedError(refuse('too_large', detail))
}

/** The ids that a span needs; those of only zeros are invalid (OTLP, Span). */
function checkSpan(span: JsonObject): void {
  for (const [name, bytes] of [
    ['traceId', 16],
    ['spanId', 8],
  ] as const) {
    if (/[1-9a-f]/.test(String(span[name] ?? ''))) continue
    const detail = `Expected a span with a ${name} of ${bytes} bytes, not all zero`
    throw new RefusedError(refuse('validation_failed', detail))
  }
}

/** The bytes of a text, which no message to another thread copies. */
function inSharedMemory(text: string): Uint8Array {
  const shared = Buffer.from(new SharedArrayBuffer(Buffer.byteLength(text)))
  shared.write(text)
  return shared
}

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
