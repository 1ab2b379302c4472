import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { count } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

/*
 * Losses of power between any two steps of a shard, its log and its store, simulated in one process: many
 * more than power-loss.slow.test.ts can run, which uses a whole server and a real disk. A second test shows
 * that the simulation works: it must detect each of several faults that are planted into the compiled
 * program.
 */

const root = join(import.meta.dirname, '../..')
const LOSSES = 150
/** A planted fault is detected in far fewer rounds. */
const PLANTED_ROUNDS = 2_000

interface Losses {
  faults: string[]
  cuts: number
  acknowledged: number
  replayed: number
  erased: number
}

/** Runs test/support/faults/log/log-losses.mjs on a compiled program. @param options rounds, seed, kind of load */
async function losePower(folder: string, ...options: (number | string)[]): Promise<Losses> {
  const script = join(root, 'test/support/faults/log/log-losses.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, [script, folder, ...options.map(String)])
  return JSON.parse(stdout) as Losses
}

describe('a shard that loses power between two steps of its log', () => {
  it('loses no acknowledged record, has no duplicates, no gaps in strands and no erased bodies', async () => {
    const { faults, ...seen } = await losePower(
      join(root, 'dist'),
      LOSSES,
      runSeed('losses of power in one process'),
    )
    expect(faults).toEqual([])
    expect(seen.cuts).toBeGreaterThanOrEqual(LOSSES)
    for (const count of [seen.acknowledged, seen.replayed]) expect(count).toBeGreaterThan(LOSSES)
    expect(seen.erased).toBeGreaterThan(10)
    count({ logLosses: seen.cuts })
  }, 600_000)
})

/** A fault: the file, the code to replace, and its replacement. */
interface Plant {
  file: string
  from: string
  to: string
  /** The kind of load to run if others hardly ever meet the fault. */
  kind?: string
}

const plants: [what: string, ...plants: Plant[]][] = [
  [
    'an outcome that is sent before it is durable',
    { file: 'workers/shard/front-frames.js', from: 'if (segment > durable)', to: 'if (false)' },
  ],
  [
    'a flush that runs ahead of the log',
    {
      file: 'workers/store/log/shard-log.js',
      from: 'this.#log.syncNow();\n        const { end }',
      to: 'const { end }',
    },
  ],
  [
    'a segment that is released before it was flushed',
    {
      file: 'workers/store/log/shard-log.js',
      from: 'this.#log.append(encodeChanges(changes));',
      to: 'this.#log.append(encodeChanges(changes)); this.#log.release(this.#log.end);',
    },
  ],
  [
    'segments of an earlier use of a file that are read as new ones',
    {
      file: 'workers/store/log/file-log.js',
      from: '&& prev.equals(before.hash)',
      to: '',
      kind: 'even',
    },
  ],
  [
    'an incomplete segment that is accepted',
    { file: 'workers/store/log/segment.js', from: '.equals(digest))', to: '.equals(digest) && false)' },
  ],
  [
    'a position that is written outside of the flush',
    {
      file: 'workers/store/log/shard-log.js',
      from: 'commitDurably(this.environment, () => {',
      to: 'commitDurably(this.environment, () => this.#memtable.alone(() => putPosition(this.environment, end))); commitDurably(this.environment, () => {',
    },
    {
      file: 'workers/store/log/memtable.js',
      from: 'move(rest) {',
      to: 'alone(rest) { this.#isFlushing = true; rest(); this.#isFlushing = false; } move(rest) {',
    },
  ],
  [
    'a read that is answered before the records in it are durable',
    {
      file: 'workers/shard/shard.js',
      from: 'this.#pending.add({ outcomes, events: [], figures: this.#figures, notices, appended: false, ...more });',
      to: 'this.#pending.add({ outcomes, events: [], figures: this.#figures, notices, appended: false, ...more }, 0);',
    },
    {
      file: 'workers/shard/front-frames.js',
      from: 'add(frame) {',
      to: 'add(frame, now) { if (now === 0) return this.#send(frame);',
    },
  ],
  [
    'an erased body that stays in the log',
    {
      file: 'workers/store/shard-store.js',
      from: 'this.#log.wipe();\n        this.#scrubber',
      to: 'this.#scrubber',
    },
  ],
  [
    'segments that are replayed in another order',
    {
      file: 'workers/store/log/shard-log.js',
      from: 'of this.#log.read())',
      to: 'of [...this.#log.read()].reverse())',
    },
  ],
  [
    'a wait for the disk that does not wait',
    {
      file: 'workers/store/log/file-log.js',
      from: 'fdatasyncSync(this.#current.fd);\n        this.#durable',
      to: 'this.#durable',
    },
  ],
  [
    'a direct write that is not synced',
    { file: 'workers/store/log/direct-writes.js', from: ' | constants.O_DSYNC', to: '' },
  ],
  [
    'a sync that counts for segments that were written after it began',
    { file: 'workers/store/log/file-log.js', from: 'Math.max(this.#durable, upTo)', to: 'this.#end.number' },
  ],
]

describe('a planted fault', { timeout: 300_000 }, () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'strandfast-planted-'))
    for (const part of ['src', 'workers'])
      cpSync(join(root, 'dist', part), join(folder, part), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it.each(plants)('is detected: %s', async (_what, ...planted) => {
    for (const { file, from, to } of planted) {
      const path = join(folder, file)
      const text = readFileSync(path, 'utf8')
      expect(text.split(from).length, `${from} in ${file}`).toBe(2)
      writeFileSync(
        path,
        text.replace(from, () => to),
      )
    }
    const kinds = planted.flatMap(({ kind }) => kind ?? [])
    const { faults } = await losePower(folder, PLANTED_ROUNDS, runSeed('planted'), ...kinds)
    expect(faults).not.toEqual([])
  })
})
