import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { forEachOf } from '../../scripts/crash-loop/request.mjs'
import { between, pick, seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import {
  copyStore,
  truncateFile,
  flipBit,
  flipKeyBit,
  makeSoundStore,
  faultFound,
  read,
  startOn,
  type SoundStore,
} from '../support/faults/damaged-store.js'
import { runSeed } from '../support/run-seed.js'
import { call, type TestServer } from '../support/server/server.js'

/** The number of flipped bits, each in another kind of page, and of truncated files. */
const flips = 3
const cuts = 1

let directory: string
let sound: SoundStore

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-flips-'))
  sound = await makeSoundStore(join(directory, 'sound'))
}, 300_000)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** The behaviour of a server on a damaged directory. */
interface Outcome {
  /** It refused to start, with a reason. */
  refused: boolean
  /** How its process ended, if it did not run to the end. */
  crash?: string
  /** The number of requests that failed with an error. */
  errors: number
  /** Wrong answers: neither the expected one nor an error. */
  wrong: string[]
}

async function serveDamaged(damaged: string): Promise<Outcome> {
  const outcome: Outcome = { refused: false, errors: 0, wrong: [] }
  let server: TestServer
  try {
    server = await startOn(damaged)
  } catch (error) {
    const message = String(error)
    const refused = message.includes('The server failed') || message.includes('Assertion failed')
    return refused ? { ...outcome, refused } : { ...outcome, crash: message }
  }
  const ended = () => server.process.exitCode ?? server.process.signalCode
  await forEachOf(sound.readings, async ({ reading, answer }) => {
    if (ended() !== null) return
    try {
      const { status, text } = await read(server, reading)
      if (status >= 500) outcome.errors++
      else if (text !== answer) outcome.wrong.push(`${reading.route}: ${text.slice(0, 200)}`)
    } catch (error) {
      // The server aborted the answer.
      if (!(error instanceof TypeError)) throw error
      outcome.errors++
    }
  })
  const crash = ended()
  if (crash !== null) outcome.crash = String(crash)
  await server.halt('SIGKILL')
  return outcome
}

describe('an undamaged store', () => {
  it('passes the check of its file, and all answers are right', async () => {
    expect(faultFound(sound.directory)).toBeUndefined()
    const copy = join(directory, 'copy')
    copyStore(sound.directory, copy)
    expect(await serveDamaged(copy)).toEqual({ refused: false, errors: 0, wrong: [] })
  })
})

describe('a store with a flipped bit', () => {
  it(
    'is refused, returns errors or right answers, or fails the check of its file',
    { timeout: 3_600_000 },
    async () => {
      const random = seededRandom(runSeed('flipped bits'))
      // A random first kind, so that runs with few rounds cover all kinds over time.
      const first = between(random, 0, sound.pages.size - 1)
      const kinds = [...sound.pages.keys()].sort()
      const tally = { refused: 0, errors: 0, crashes: 0, wrong: 0, harmless: 0, found: 0 }
      for (let round = 0; round < flips; round++) {
        const kind = kinds[(first + round) % kinds.length] ?? ''
        const damaged = join(directory, 'damaged')
        copyStore(sound.directory, damaged)
        const what = `${kind}: ${flipBit(damaged, pick(random, sound.pages.get(kind) ?? []), random)}`
        const found = faultFound(damaged)
        const { refused, crash, errors, wrong } = await serveDamaged(damaged)
        if (wrong.length > 0) expect(found, `${what}\n${wrong.join('\n')}`).toBeDefined()
        if (crash !== undefined) console.log(`${what}: ${crash} (${found})`)
        if (found !== undefined) tally.found++
        if (refused) tally.refused++
        else if (crash !== undefined) tally.crashes++
        else if (wrong.length > 0) tally.wrong++
        else if (errors > 0) tally.errors++
        else tally.harmless++
      }
      console.log(`${flips} flipped bits: ${JSON.stringify(tally)}; pages of ${kinds.length} kinds`)
    },
  )
})

describe('a key with a flipped bit', () => {
  it('causes errors in reads, which the reads of this test detect', async () => {
    const damaged = join(directory, 'damaged')
    copyStore(sound.directory, damaged)
    flipKeyBit(damaged, sound.pages.get('agents leaf') ?? [], 'agent-25')
    const { refused, errors, wrong } = await serveDamaged(damaged)
    expect(refused || errors > 0).toBe(true)
    expect(wrong).toEqual([])
  })

  it('causes an error, never a 404, and no second agent is created for it', async () => {
    const damaged = join(directory, 'damaged')
    const lost: [table: string, key: string, requests: string[]][] = [
      [
        'agents',
        'agent-25',
        ['GET /v1/agents/agent-25/status', 'GET /v1/strand/export?agent=agent-25', write('agent-25')],
      ],
      ['organisms', 'first', ['GET /v1/organisms/first']],
    ]
    for (const [table, key, requests] of lost) {
      copyStore(sound.directory, damaged)
      flipKeyBit(damaged, sound.pages.get(`${table} leaf`) ?? [], key)
      expect(faultFound(damaged)).toBeDefined()
      const server = await startOn(damaged)
      for (const route of requests) {
        const isWrite = route.startsWith('POST')
        const { status, body } = await call(server, route, { ...(isWrite && { body: { data: {} } }) })
        expect([route, status, body.code]).toEqual([route, 500, 'internal_error'])
      }
      await server.halt('SIGKILL')
    }
  })
})

function write(agent: string): string {
  return `POST /v1/collections/${agent}/records`
}

describe('a table with a flipped bit in its name', () => {
  it.each(['api-keys', 'auth-ended', 'strands'])(
    'is detected, and its store is refused: %s',
    async (table) => {
      const damaged = join(directory, 'damaged')
      copyStore(sound.directory, damaged)
      // Names end in a NUL.
      flipKeyBit(damaged, sound.pages.get(' leaf') ?? [], `${table}\0`)
      expect(faultFound(damaged)).toContain('unknown name')
      // Otherwise an empty table with the right name would be created.
      expect(await serveDamaged(damaged)).toEqual({ refused: true, errors: 0, wrong: [] })
    },
  )
})

describe('a store with a truncated file', () => {
  it('is refused with a reason, or all answers are right', { timeout: 3_600_000 }, async () => {
    const random = seededRandom(runSeed('cut files'))
    for (let round = 0; round < cuts; round++) {
      const damaged = join(directory, 'damaged')
      copyStore(sound.directory, damaged)
      const what = truncateFile(damaged, random)
      const { refused, crash, wrong } = await serveDamaged(damaged)
      expect({ what, crash, wrong }).toEqual({ what, crash: undefined, wrong: [] })
      // The missing part may have been free pages only.
      if (!refused) expect(faultFound(damaged)).toBeUndefined()
    }
  })
})
