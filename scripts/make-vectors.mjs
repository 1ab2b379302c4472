// Creates test/vectors, the frozen vectors of the record format, version 1, from the built code
// (`npm run build` first). The result is deterministic. Vectors never change for v1, so existing files are
// only overwritten with --force.
//
// node scripts/make-vectors.mjs [--out DIR] [--force]

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { checkpointText, signCheckpoint } from '../dist/src/strand/checkpoint.js'
import { rotationProofText } from '../dist/src/strand/header.js'
import { recordHash } from '../dist/src/strand/hash.js'
import { formatHlc } from '../dist/src/strand/hlc.js'
import { deriveSeed, keyPairFromSeed } from '../dist/src/strand/keys.js'
import { consistencyPath, inclusionPath } from '../dist/src/strand/merkle.js'
import { checkpointsOf } from './vectors/checkpoint-vectors.mjs'
import { exportsOf } from './vectors/export-vectors.mjs'
import { jsonVectors } from './vectors/json-vectors.mjs'
import { logsOf } from './vectors/log-vectors.mjs'
import {
  START_MS,
  firstSeed,
  hex,
  readerOf,
  root,
  second,
  secondSeed,
  wholeStrand,
} from './vectors/strand-maker.mjs'
import { segmentVectors } from './vectors/segment-vectors.mjs'
import { strictOf } from './vectors/strict-vectors.mjs'

function recordVectors() {
  const strand = wholeStrand()
  const rotation = JSON.parse(strand.records[8].body)
  return {
    keys: [firstSeed, secondSeed].map((seed) => ({
      seed: hex(seed),
      public_key: keyPairFromSeed(seed).publicKey,
    })),
    derived: ['strandfast/example/a', 'strandfast/example/b'].map((info) => ({
      master_seed: hex(firstSeed),
      info,
      seed: hex(deriveSeed(firstSeed, info)),
    })),
    strand: strand.strand,
    records: strand.records,
    rotation: {
      ...rotation,
      strand: strand.strand,
      proof_text: rotationProofText(strand.strand, rotation.public_key),
    },
  }
}

function hlcVectors() {
  const readings = [
    [0, 0],
    [1, 0xffff],
    [START_MS, 3],
    [2 ** 48 - 1, 0xffff],
    [1_763_600_000_000, 0x0a0b],
  ]
  return {
    formats: readings.map(([ms, counter]) => ({ ms, counter, text: formatHlc({ ms, counter }) })),
    malformed: [
      '',
      '0199c5b8f2a4',
      '0199C5B8F2A4-0003',
      '0199c5b8f2a4-003',
      '0199c5b8f2a4-00003',
      ' 0199c5b8f2a4-0003',
    ],
  }
}

function treeVectors() {
  const leaf = (at) => Buffer.from(recordHash(`leaf ${at}\n`), 'hex')
  const leaves = Array.from({ length: 300 }, (_, at) => leaf(at))
  const proof = (index, size) => ({
    index,
    size,
    leaf: hex(leaves[index]),
    path: inclusionPath(index, size, readerOf(leaves)).map(hex),
    root: hex(root(leaves.slice(0, size))),
  })
  const strand = wholeStrand()
  return {
    leaf_text: 'leaf <index>\n',
    roots: [0, 1, 2, 3, 4, 5, 7, 8, 255, 256, 257, 300].map((size) => ({
      size,
      root: hex(root(leaves.slice(0, size))),
    })),
    proofs: [
      [0, 1],
      [0, 2],
      [1, 2],
      [2, 3],
      [4, 7],
      [0, 8],
      [255, 256],
      [255, 257],
      [256, 257],
      [123, 300],
    ].map((pair) => proof(...pair)),
    strand_proof: {
      index: 5,
      size: 12,
      leaf: strand.records[5].hash,
      path: inclusionPath(5, 12, readerOf(strand.leaves())).map(hex),
      root: hex(root(strand.leaves())),
    },
    checkpoint: {
      origin: strand.checkpoint().origin,
      size: strand.checkpoint().size,
      root: strand.checkpoint().rootHex,
      public_key: second.publicKey,
      text: checkpointText(strand.checkpoint()),
      note: signCheckpoint(strand.checkpoint(), second),
    },
  }
}

function consistencyVectors() {
  const leaves = Array.from({ length: 300 }, (_, at) => Buffer.from(recordHash(`leaf ${at}\n`), 'hex'))
  const proof = (from, to, of) => ({
    from,
    to,
    from_root: hex(root(of.slice(0, from))),
    to_root: hex(root(of.slice(0, to))),
    path: consistencyPath(from, to, readerOf(of)).map(hex),
  })
  return {
    leaf_text: 'leaf <index>\n',
    proofs: [
      [1, 1],
      [1, 2],
      [2, 3],
      [3, 4],
      [4, 7],
      [6, 8],
      [7, 8],
      [128, 256],
      [255, 257],
      [256, 300],
      [300, 300],
    ].map(([from, to]) => proof(from, to, leaves)),
    strand_proof: proof(7, 12, wholeStrand().leaves()),
  }
}

const { values } = parseArgs({
  options: { out: { type: 'string' }, force: { type: 'boolean', default: false } },
})
const out = values.out ?? fileURLToPath(new URL('../test/vectors/', import.meta.url))
const vectors = {
  'json.json': jsonVectors(),
  'records.json': recordVectors(),
  'hlc.json': hlcVectors(),
  'tree.json': treeVectors(),
  'consistency.json': consistencyVectors(),
  'exports.json': exportsOf(),
  'checkpoints.json': checkpointsOf(),
  'logs.json': logsOf(),
  'strict.json': strictOf(),
  'segments.json': segmentVectors(),
}
const files = Object.entries(vectors).map(([name, value]) => [name, `${JSON.stringify(value, null, 1)}\n`])
files.push(['export.ndjson', vectors['exports.json'][0].lines.map((line) => `${line}\n`).join('')])
mkdirSync(out, { recursive: true })
const existing = values.force ? [] : files.map(([name]) => name).filter((name) => existsSync(join(out, name)))
for (const [name, text] of files) if (!existing.includes(name)) writeFileSync(join(out, name), text)
if (existing.length > 0) {
  process.stderr.write(
    `${existing.join(', ')} exist in ${out} and are frozen; use --force to overwrite them\n`,
  )
  process.exit(1)
}
