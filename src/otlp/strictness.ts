import type { DescField, DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf'
import { ScalarType } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'

/* Checks of messages that the library does not make. Each throws an Error with the reason. */

/** Messages that a message may contain in each other, as in other libraries of protobuf. */
const DEPTH_MAX = 100

/**
 * Checks that each field has the wire type of its schema and ends within its message: the library reads the
 * bytes of a field as what the schema says, and those after the end of its message.
 * @returns the number of fields, with those of the messages in it; after more than `most` it stops
 */
export function checkWire(schema: DescMessage, bytes: Uint8Array, most: number): number {
  return checkFields(new BinaryReader(bytes), { schema, end: bytes.length, depth: 0, most })
}

function checkFields(
  reader: BinaryReader,
  { schema, end, depth, most }: { schema: DescMessage; end: number; depth: number; most: number },
): number {
  if (depth >= DEPTH_MAX) throw new Error(`maximum recursion depth of ${DEPTH_MAX} reached`)
  const known = wireFields(schema)
  let count = 0
  while (reader.pos < end && count <= most) {
    const [number, type] = reader.tag()
    count++
    const field = known[number]
    if (field !== undefined && field.type !== type)
      throw new Error(`field ${number} of ${schema.name} has the wire type ${type}`)
    if (field?.message === undefined) skipField(reader, { type, number, depthMax: DEPTH_MAX - depth })
    else {
      const bytes = reader.uint32()
      const fieldEnd = reader.pos + bytes
      const inner = { schema: field.message, end: fieldEnd, depth: depth + 1, most: most - count }
      if (fieldEnd <= end) count += checkFields(reader, inner)
      else reader.pos = fieldEnd
    }
    if (reader.pos > end) throw new Error(`field ${number} of ${schema.name} exceeds its message`)
  }
  return count
}

/** As `skip` of the reader, which takes three times as long for bytes, because it returns them. */
export function skipField(
  reader: BinaryReader,
  { type, number, depthMax }: { type: WireType; number: number; depthMax: number },
): void {
  if (type !== WireType.LengthDelimited) reader.skip(type, number, depthMax)
  else {
    const bytes = reader.uint32()
    reader.pos += bytes
    if (reader.pos > reader.len) throw new Error(`field ${number} exceeds its message`)
  }
}

interface WireField {
  type: WireType
  message: DescMessage | undefined
}

const fieldsBySchema = new Map<DescMessage, (WireField | undefined)[]>()

/** The fields of a schema by their number. No repeated field of OTLP can be packed. */
function wireFields(schema: DescMessage): (WireField | undefined)[] {
  const known = fieldsBySchema.get(schema)
  if (known !== undefined) return known
  const fields: (WireField | undefined)[] = []
  for (const field of schema.fields) {
    const { message, scalar = ScalarType.BYTES } = field
    fields[field.number] = { type: wireTypes[scalar] ?? WireType.Varint, message }
  }
  fieldsBySchema.set(schema, fields)
  return fields
}

/** Other scalars are varints. */
const wireTypes: Partial<Record<ScalarType, WireType>> = {
  [ScalarType.BYTES]: WireType.LengthDelimited,
  [ScalarType.STRING]: WireType.LengthDelimited,
  [ScalarType.DOUBLE]: WireType.Bit64,
  [ScalarType.FIXED64]: WireType.Bit64,
  [ScalarType.FIXED32]: WireType.Bit32,
}

const jsonNumber = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?Infinity)$/

/**
 * Checks that a text for a number is one: the library also reads "0x10", " 7 " and an empty text. Integers
 * that are written with a fraction or exponent must not have been rounded.
 */
export function checkNumbers(schema: DescMessage, json: JsonObject): void {
  for (const field of schema.fields) {
    const value = json[field.jsonName]
    if (value === undefined) continue
    for (const each of Array.isArray(value) ? value : [value]) checkNumber(field, each)
  }
}

function checkNumber({ message, scalar, name }: DescField, value: JsonValue): void {
  if (typeof value === 'number') {
    if (scalar !== ScalarType.DOUBLE && Number.isInteger(value) && !Number.isSafeInteger(value))
      throw new Error(`${name} is not exact`)
  } else if (typeof value === 'string') {
    const isNumber = scalar !== undefined && wireTypes[scalar] !== WireType.LengthDelimited
    if (isNumber && scalar !== ScalarType.BOOL && !jsonNumber.test(value))
      throw new Error(`${name} is not a number`)
  } else if (message !== undefined && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    checkNumbers(message, value)
  }
}
