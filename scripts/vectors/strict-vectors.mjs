// Exports on which libraries and parsers differ. Every verifier must reach the same verdict on each.

import { createHash } from 'node:crypto'
import { signCheckpoint } from '../../dist/src/strand/checkpoint.js'
import { genesisBody, keyRotateBody } from '../../dist/src/strand/genesis.js'
import { canonicalJson } from '../../dist/src/strand/json.js'
import { AGENT, START_MS, Strand, first, firstSeed, hex, reading, second } from './strand-maker.mjs'

const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n
const IDENTITY = `01${'00'.repeat(31)}`
const ORDER_8 = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'
const ZERO = '00'.repeat(32)

const littleEndian = (bytes) => BigInt(`0x${hex(Buffer.from(bytes).reverse())}`)
const scalar = (number) => hex(Buffer.from(number.toString(16).padStart(64, '0'), 'hex').reverse())
const sha512 = (...parts) => createHash('sha512').update(Buffer.concat(parts)).digest()

/** Signs with the first key and r = 0, so that R is the point of order 1. */
function signWithSmallR(text) {
  const secret = sha512(firstSeed).subarray(0, 32)
  secret[0] &= 248
  secret[31] = (secret[31] & 127) | 64
  const key = Buffer.from(first.publicKey, 'hex')
  const challenge = littleEndian(sha512(Buffer.from(IDENTITY, 'hex'), key, Buffer.from(text)))
  return IDENTITY + scalar((challenge * littleEndian(secret)) % ORDER)
}

const withOrderAdded = (signature) =>
  signature.slice(0, 64) + scalar(littleEndian(Buffer.from(signature.slice(64), 'hex')) + ORDER)

/** A signature that is valid for any text with a key of order 1, in libraries that allow this. */
const signedByIdentity = () => IDENTITY + ZERO

export function strictOf() {
  const cases = []
  const add = (name, ok, lines, more = {}) => {
    const text = typeof lines === 'string' ? lines : lines.map((line) => `${line}\n`).join('')
    cases.push({ name, public_key: first.publicKey, text, ...more, expected: { ok } })
  }
  lineCases(add)
  bodyCases(add)
  signatureCases(add)
  noteCases(add)
  erasureCases(add)
  strandCases(add)
  return cases
}

const plain = () =>
  new Strand().append({ name: 'x', body: reading(1) }).append({ name: 'y', body: reading(2) })
const withMember = (lines, at, member) => lines.with(at, lines[at].replace('{', `{${member},`))

function lineCases(add) {
  const lines = plain().lines()
  const member = (name, ok, text) => {
    for (const [at, where] of [
      [0, 'manifest'],
      [2, 'record'],
      [4, 'trailer'],
    ]) {
      add(`${name}, in the ${where}`, ok, withMember(lines, at, text))
    }
  }
  member('an unknown member that is a text', true, '"x":"1"')
  member('an unknown member that is a count', true, '"x":9007199254740991')
  member('an unknown member that is null', true, '"x":null')
  member('an unknown member that is an empty array', false, '"x":[]')
  member('an unknown member that is an array', false, '"x":[1]')
  member('an unknown member that is an object', false, '"x":{}')
  member('an unknown member named __proto__', false, '"__proto__":1')
  member('an unknown member named __proto__ by an escape', false, '"\\u005f_proto__":"x"')
  member('an unknown member with NUL in its name', false, '"a\\u0000":1')
  member('an unknown member with half a surrogate pair in its name', false, '"\\ud800":1')
  member('an unknown member with half a surrogate pair', false, '"x":"\\udc00"')
  member('an unknown member twice', false, '"x":1,"x":1')
  member('an integer beyond 2^53-1', false, '"x":9007199254740992')
  member('a huge integer', false, `"x":${'9'.repeat(5000)}`)
  member('a number with a fraction', false, '"x":1.5')
  member('a number with a fraction of nothing', false, '"x":18.0')
  member('a number with an exponent', false, '"x":1e2')
  member('a number below 0', false, '"x":-1')
  member('a zero below 0', false, '"x":-0')
  const number = (name, at, from, to) => add(name, false, lines.with(at, lines[at].replace(from, to)))
  number('to_seq with a fraction of nothing', 0, '"to_seq":2', '"to_seq":2.0')
  number('from_seq below 0', 0, '"from_seq":0', '"from_seq":-0')
  number('records with an exponent', 4, '"records":3', '"records":3e0')
  number('record_count with a fraction', 0, '"record_count":2', '"record_count":2.5')
  add('a carriage return before each line feed', true, lines.map((line) => `${line}\r\n`).join(''))
  add('no line feed at the end', true, lines.join('\n'))
  add('carriage returns alone', false, lines.join('\r'))
  add('an empty line', false, lines.toSpliced(2, 0, ''))
  add('an empty line at the end', true, [...lines, ''])
  add('a line separator for a line feed', false, lines.join('\u2028'))
  add('a byte order mark', true, `\ufeff${lines.join('\n')}\n`)
  add('white space around a line', true, lines.with(2, ` \t${lines[2]} \t`))
  add('white space that is none of JSON', false, lines.with(2, `\u00a0${lines[2]}`))
  const bytes = (name, from, to) => {
    const file = Buffer.from(lines.map((line) => `${line}\n`).join(''))
    const at = file.indexOf(from)
    const changed = Buffer.concat([file.subarray(0, at), to, file.subarray(at + from.length)])
    add(name, false, '', { base64: changed.toString('base64'), text: undefined })
  }
  bytes(
    'an unknown member that is not UTF-8',
    '{"format"',
    Buffer.from('7b2278223a22ff222c22666f726d617422', 'hex'),
  )
  bytes('an unknown member that is overlong UTF-8', '{"h"', Buffer.from('7b2278223a22c0af222c226822', 'hex'))
  bytes(
    'an unknown member that is half a pair in UTF-8',
    '{"h"',
    Buffer.from('7b2278223a22eda080222c226822', 'hex'),
  )
}

function bodyCases(add) {
  const body = (name, ok, text) =>
    add(`a body with ${name}`, ok, new Strand().append({ name: 'x', body: text }).lines())
  body('64 levels', true, '['.repeat(64) + ']'.repeat(64))
  body('65 levels', false, '['.repeat(65) + ']'.repeat(65))
  body('5,000 levels', false, '['.repeat(5000) + ']'.repeat(5000))
  body('brackets in a text', true, `"${'['.repeat(100)}"`)
  body('a member twice', false, '{"a":1,"a":1}')
  body('a member twice by an escape', false, '{"a":1,"\\u0061":1}')
  body('a member twice, deep within', false, '[{"b":{"a":1,"a":2}}]')
  body('__proto__', false, '{"__proto__":{}}')
  body('NUL in a name', false, '{"\\u0000":1}')
  body('half a surrogate pair', false, '"\\ud83d"')
  body('a large integer', true, '10000000000000000')
  body('a number too large for a double', true, '1e400')
  body('5,000 digits', true, '9'.repeat(5000))
  body('NaN', false, 'NaN')
  body('a leading zero', false, '[01]')
  body('white space around it', true, ' 1 ')
  body('a byte order mark', false, '\ufeff1')
  body('nothing', false, '')
  const genesis = genesisBody({
    agent: AGENT,
    createdAtMs: START_MS,
    publicKey: first.publicKey,
    zone: 'free',
  })
  const twice = (member) => genesis.replace('{', `{${member},`)
  add('a genesis that names its agent twice', false, new Strand({ body: twice('"agent":"x"') }).lines())
  add('a genesis that names its key twice', false, new Strand({ body: twice('"public_key":"x"') }).lines())
  const rotation = (change) => {
    const strand = new Strand().rotate(second)
    const { proof } = JSON.parse(strand.records[1].body)
    strand.records.pop()
    strand.keys = first
    strand.append({
      name: 'rotation',
      type: 'sys/key_rotate',
      body: change(keyRotateBody(second.publicKey, proof)),
    })
    strand.keys = second
    return strand.append({ name: 'after', body: reading(1) }).lines()
  }
  add(
    'a rotation',
    true,
    rotation((text) => text),
  )
  add(
    'a rotation with another member',
    true,
    rotation((text) => text.replace('{', '{"a":[1],')),
  )
  add(
    'a rotation that names its key twice',
    false,
    rotation((text) => text.replace('{', '{"public_key":"x",')),
  )
  add(
    'a rotation with its proof twice',
    false,
    rotation((text) => text.replace('{', '{"proof":"x",')),
  )
}

function signatureCases(add) {
  const strand = (sign) => new Strand().append({ name: 'x', body: reading(1), sign }).lines()
  add('a signature whose R is of order 1', false, strand(signWithSmallR))
  const right = new Strand().append({ name: 'x', body: reading(1) })
  const { signature } = right.records[1]
  add('a signature', true, right.lines())
  add(
    'a signature with the order added to S',
    false,
    strand(() => withOrderAdded(signature)),
  )
  for (const [name, key] of [
    ['1', IDENTITY],
    ['1, spelt with the prime added', `ee${'ff'.repeat(30)}7f`],
    ['1, with the sign set', `01${'00'.repeat(30)}80`],
    ['2', `ec${'ff'.repeat(30)}7f`],
    ['4', ZERO],
    ['8', ORDER_8],
  ]) {
    const keys = { ...first, publicKey: key }
    const body = genesisBody({ agent: AGENT, createdAtMs: START_MS, publicKey: key, zone: 'free' })
    const sign = signedByIdentity
    const made = new Strand({ body, header: { key }, sign })
    made.keys = keys
    const lines = made
      .append({ name: 'x', body: reading(1), sign })
      .lines({ trailer: { checkpoint: undefined } })
    add(`a key of order ${name}`, false, lines, { public_key: key })
    const rotated = new Strand().append({
      name: 'rotation',
      type: 'sys/key_rotate',
      body: keyRotateBody(key, signedByIdentity()),
    })
    rotated.keys = keys
    rotated.append({ name: 'after', body: reading(1), sign })
    add(`a rotation to a key of order ${name}`, false, rotated.lines({ trailer: { checkpoint: undefined } }))
  }
}

function noteCases(add) {
  const strand = plain()
  const note = signCheckpoint(strand.checkpoint(), first)
  const noted = (name, ok, checkpoint) =>
    add(`a checkpoint with ${name}`, ok, strand.lines({ trailer: { checkpoint } }))
  const line = (name) => `${note}\u2014 ${name} ${Buffer.alloc(76, 5).toString('base64')}\n`
  noted('a line of a witness', true, line('witness.example/w1'))
  noted('a line of a witness beyond ASCII', true, line('zeuge.example/\u00fc\u{1f600}'))
  for (const code of [0x00, 0x1c, 0x7f, 0x85, 0xa0, 0x1680, 0x2003, 0x2028, 0x202f, 0x3000, 0xfeff]) {
    const name = code.toString(16).padStart(4, '0')
    noted(`U+${name} in the name of a witness`, false, line(`a${String.fromCharCode(code)}b`))
  }
  noted('a plus in the name of a witness', false, line('a+b'))
  noted('a zero-width joiner in the name of a witness', true, line('a\u200db'))
  noted('17 signature lines', false, note + line('w').slice(note.length).repeat(16))
  noted('16 signature lines', true, note + line('w').slice(note.length).repeat(15))
  noted('carriage returns', false, note.replaceAll('\n', '\r\n'))
  noted('a line behind it', false, `${note}\n`)
  noted('a size in other digits', false, note.replace('\n3\n', '\n\u0663\n'))
  const [text, signed] = note.split(/(?<=\n)\n/)
  const [, , encoded] = signed.trimEnd().split(' ')
  const bytes = Buffer.from(encoded, 'base64')
  const by = (signature) => {
    const whole = Buffer.concat([bytes.subarray(0, 4), Buffer.from(signature, 'hex')])
    return note.replace(encoded, whole.toString('base64'))
  }
  noted('a signature whose R is of order 1', false, by(signWithSmallR(text)))
  noted('the order added to S', false, by(withOrderAdded(hex(bytes.subarray(4)))))
}

function erasureCases(add) {
  const make = () => plain()
  const erase = (strand, target, change = {}) =>
    strand.append({
      name: 'erase',
      type: 'sys/erase',
      body: canonicalJson({
        principal: 'root',
        target: strand.records[target].hash,
        target_seq: target,
        ...change,
      }),
    })
  const ended = (strand, recordCount = strand.records.length - 1) => ({
    trailer: ended.trailer(strand, recordCount),
  })
  ended.trailer = (strand, recordCount) => ({
    recordCount,
    checkpoint: signCheckpoint(strand.checkpoint(), first),
  })
  const erasedStrand = erase(make(), 1)
  const unexplained = { unexplained: true }
  add('an erased body and its sys/erase', true, erasedStrand.lines({ erased: [1], ...ended(erasedStrand) }), {
    unexplained: false,
  })
  add('an erased body without a sys/erase, whole', false, make().lines({ erased: [1], ...ended(make()) }))
  add(
    'an erased body, of an export that does not say how it ended',
    true,
    make().lines({ erased: [1] }),
    unexplained,
  )
  add(
    'an erased body, the export ends before its sys/erase',
    true,
    make().lines({ erased: [1], manifest: { recordCount: 3 }, ...ended(make(), 3) }),
    unexplained,
  )
  add(
    'an erased body, erased while it was exported',
    true,
    make().lines({ erased: [1], ...ended(make(), 3) }),
    unexplained,
  )
  const wrong = (name, change) => {
    const strand = erase(make(), 1, change)
    add(
      `an erased body whose sys/erase names ${name}`,
      false,
      strand.lines({ erased: [1], ...ended(strand) }),
    )
  }
  wrong('another hash', { target: make().records[2].hash })
  wrong('another seq', { target_seq: 2 })
  wrong('itself', { target_seq: 3 })
  wrong('a seq that is a text', { target_seq: '1' })
  const twice = erase(make(), 1)
  add('an erased body and an erased sys/erase', false, twice.lines({ erased: [1, 3], ...ended(twice) }))
  const hidden = erase(make(), 1)
  add(
    'an erased body and a withheld sys/erase',
    true,
    hidden.lines({ erased: [1], withheld: [3], ...ended(hidden) }),
    unexplained,
  )
  add(
    'an erased body in a part',
    true,
    erasedStrand.lines({ from: 1, to: 2, erased: [1], trailer: { checkpoint: undefined } }),
    unexplained,
  )
  add(
    'a trailer that counts fewer records than the manifest',
    false,
    make().lines({ manifest: { recordCount: 5 }, ...ended(make(), 4) }),
  )
}

function strandCases(add) {
  const one = plain()
  const another = new Strand({ header: { hlc: '0199c5b8f2a4-0001' } }).append({ name: 'x', body: reading(7) })
  add('the strand that was noted', true, one.lines(), { strand: one.strand })
  add('the strand that was noted, in capitals', true, one.lines(), { strand: one.strand.toUpperCase() })
  add('another strand of the same key', false, another.lines(), { strand: one.strand })
  add('another strand of the same key, none noted', true, another.lines())
}
