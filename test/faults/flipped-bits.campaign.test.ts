import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { forEachOf } from '../../scripts/crash-loop/request.mjs'
import { between, pick, seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import {
  copyStore,
  cutFile,
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

/** How often a bit is flipped, each time in a page of another kind, and how often the file is cut. */
const flips = 3
const cuts = 1

let directory: string
let sound: SoundStore

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-flips-'))
  sound = await makeSoundStore(join(directory, 'sound'))
}, 300_000)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** How a server took a damaged directory. */
interface Outcome {
  /** It did not start, and said why. */
  refused: boolean
  /** What ended its process, if something did. */
  crash?: string
  /** Requests that were answered with an error. */
  errors: number
  /** Answers that are neither the truth nor an error. */
  untrue: string[]
}

async function serveDamaged(damaged: string): Promise<Outcome> {
  const outcome: Outcome = { refused: false, errors: 0, untrue: [] }
  let server: TestServer
  try {
    server = await startOn(damaged)
  } catch (error) {
    const said = String(error)
    const refused = said.includes('The server failed') || said.includes('Assertion failed')
    return refused ? { ...outcome, refused } : { ...outcome, crash: said }
  }
  const ended = () => server.process.exitCode ?? server.process.signalCode
  await forEachOf(sound.readings, async ({ reading, answer }) => {
    if (ended() !== null) return
    try {
      const { status, text } = await read(server, reading)
      if (status >= 500) outcome.errors++
      else if (text !== answer) outcome.untrue.push(`${reading.route}: ${text.slice(0, 200)}`)
    } catch (error) {
      // Broken off.
      if (!(error instanceof TypeError)) throw error
      outcome.errors++
    }
  })
  const crash = ended()
  if (crash !== null) outcome.crash = String(crash)
  await server.halt('SIGKILL')
  return outcome
}

describe('a store in which nothing has changed', () => {
  it('passes the check of its file and answers the truth', async () => {
    expect(faultFound(sound.directory)).toBeUndefined()
    const copy = join(directory, 'copy')
    copyStore(sound.directory, copy)
    expect(await serveDamaged(copy)).toEqual({ refused: false, errors: 0, untrue: [] })
  })
})

describe('a store in which a bit has flipped', () => {
  it(
    'is refused, answers errors or the truth, or is found by the check of its file',
    { timeout: 3_600_000 },
    async () => {
      const random = seededRandom(runSeed('flipped bits'))
      // Those of few rounds begin anywhere.
      const first = between(random, 0, sound.pages.size - 1)
      const kinds = [...sound.pages.keys()].sort()
      const tally = { refused: 0, errors: 0, crashes: 0, untrue: 0, harmless: 0, found: 0 }
      for (let round = 0; round < flips; round++) {
        const kind = kinds[(first + round) % kinds.length] ?? ''
        const damaged = join(directory, 'damaged')
        copyStore(sound.directory, damaged)
        const what = `${kind}: ${flipBit(damaged, pick(random, sound.pages.get(kind) ?? []), random)}`
        const found = faultFound(damaged)
        const { refused, crash, errors, untrue } = await serveDamaged(damaged)
        if (untrue.length > 0) expect(found, `${what}\n${untrue.join('\n')}`).toBeDefined()
        if (crash !== undefined) console.log(`${what}: ${crash} (${found})`)
        if (found !== undefined) tally.found++
        if (refused) tally.refused++
        else if (crash !== undefined) tally.crashes++
        else if (untrue.length > 0) tally.untrue++
        else if (errors > 0) tally.errors++
        else tally.harmless++
      }
      console.log(`${flips} flipped bits: ${JSON.stringify(tally)}; pages of ${kinds.length} kinds`)
    },
  )
})

describe('a key in which a bit has flipped', () => {
  it('is an error to whoever reads it, which the readings of this test see', async () => {
    const damaged = join(directory, 'damaged')
    copyStore(sound.directory, damaged)
    flipKeyBit(damaged, sound.pages.get('agents leaf') ?? [], 'agent-25')
    const { refused, errors, untrue } = await serveDamaged(damaged)
    expect(refused || errors > 0).toBe(true)
    expect(untrue).toEqual([])
  })

  it('is a fault where it is asked for, never a 404, and no second agent emerges in its place', async () => {
    const damaged = join(directory, 'damaged')
    const lost: [table: string, key: string, asked: string[]][] = [
      [
        'agents',
        'agent-25',
        ['GET /v1/agents/agent-25/status', 'GET /v1/strand/export?agent=agent-25', write('agent-25')],
      ],
      ['organisms', 'first', ['GET /v1/organisms/first']],
    ]
    for (const [table, key, asked] of lost) {
      copyStore(sound.directory, damaged)
      flipKeyBit(damaged, sound.pages.get(`${table} leaf`) ?? [], key)
      expect(faultFound(damaged)).toBeDefined()
      const server = await startOn(damaged)
      for (const route of asked) {
        const isWrite = route.startsWith('POST')
        const { status, body } = await call(server, route, { ...(isWrite && { body: { data: {} } }) })
        // What a write meets ends its shard's thread, as all damage does.
        const expected = isWrite ? [503, 'outcome_unknown'] : [500, 'internal_error']
        expect([route, status, body.code]).toEqual([route, ...expected])
      }
      await server.halt('SIGKILL')
    }
  })
})

function write(agent: string): string {
  return `POST /v1/collections/${agent}/records`
}

describe('a table in whose name a bit has flipped', () => {
  it.each(['api-keys', 'auth-ended', 'strands'])('is found, and its store refused: %s', async (table) => {
    const damaged = join(directory, 'damaged')
    copyStore(sound.directory, damaged)
    // Names end in a NUL.
    flipKeyBit(damaged, sound.pages.get(' leaf') ?? [], `${table}\0`)
    expect(faultFound(damaged)).toContain('unknown name')
    // Another one of its name would be made, and be empty.
    expect(await serveDamaged(damaged)).toEqual({ refused: true, errors: 0, untrue: [] })
  })
})

describe('a store whose file was cut', () => {
  it('is refused with what is wrong, or shows the truth', { timeout: 3_600_000 }, async () => {
    const random = seededRandom(runSeed('cut files'))
    for (let round = 0; round < cuts; round++) {
      const damaged = join(directory, 'damaged')
      copyStore(sound.directory, damaged)
      const what = cutFile(damaged, random)
      const { refused, crash, untrue } = await serveDamaged(damaged)
      expect({ what, crash, untrue }).toEqual({ what, crash: undefined, untrue: [] })
      // What was cut off may have been free pages only.
      if (!refused) expect(faultFound(damaged)).toBeUndefined()
    }
  })
})
