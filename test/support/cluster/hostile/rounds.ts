import { pick, seededRandom } from '../../../../scripts/crash-loop/seeded-random.mjs'
import { arenas } from './arenas.js'
import { draw, type Kind, kinds } from './attacks.js'
import type { HostileCluster } from './hostile-cluster.js'
import type { Allowed } from './oracle.js'
import { inOne } from './tables.js'

const TRIES = 5

/** Tries attacks, one after the other, and goes on after a finding. @returns what was neither the truth nor a refusal */
export async function hostileRounds(
  hostile: HostileCluster,
  { rounds, seed, report }: { rounds: number; seed: number; report(line: string): void },
): Promise<string[]> {
  const found: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const random = seededRandom(seed + round)
    const kind = kinds[(seed + round) % kinds.length] ?? 'flip'
    const turn = Math.floor((seed + round) / kinds.length)
    const place = pick(random, placesOf(kind))
    const arena = arenas[place]
    await hostile.restore()
    const sql: string[] = []
    const strike = async () => {
      // Some changes the tables themselves refuse.
      for (let tries = 0; tries < TRIES; tries += 1) {
        const drawn = await draw(kind, { database: hostile.database, random, turn: turn + tries })
        if (drawn.length > 0 && (await isTaken(inOne(hostile.database, drawn)))) {
          sql.push(...drawn)
          return
        }
      }
    }
    const said = await arena(hostile, strike, () => allowedBy(hostile)).catch((error: unknown) => [
      `It failed: ${String(error)}`,
    ])
    report(
      `round ${round + 1}/${rounds}, seed ${seed + round}: ${kind}, ${place}: ${said.length === 0 ? 'well' : 'FOUND'}`,
    )
    for (const statement of sql) report(`  ${shortened(statement)}`)
    for (const one of said) report(`  FOUND ${one}`)
    found.push(
      ...said.map(
        (one) => `${kind}, ${place}, seed ${seed + round}: ${one}; ${sql.map(shortened).join('; ')}`,
      ),
    )
  }
  return found
}

async function isTaken(change: Promise<void>): Promise<boolean> {
  try {
    await change
    return true
  } catch {
    return false
  }
}

/**
 * Where a kind of attack is tried. What was written before is read again by nodes that start anew and by pulls; the others are told of
 * what changes while they run, or since they stopped.
 */
function placesOf(kind: Kind): readonly Place[] {
  if (kind === 'edit as it is written') return ['following', 'running']
  if (kind === 'edit addresses') return ['following', 'take-over']
  return places
}

type Place = keyof typeof arenas
/** The first ones more often. */
const places: readonly Place[] = [
  'fresh start',
  'fresh start',
  'fresh start',
  'restart',
  'restart',
  'pull',
  'running',
  'take-over',
]

/**
 * What a node may serve that knows nothing but the tables: less, where the logs are the beginnings of what they were. Rows of an
 * earlier moment have the bodies that were erased since.
 */
export async function allowedBy({ database }: HostileCluster): Promise<Allowed> {
  const { rows } = await database.query<{ foreign: string; fewer: string; gaps: string }>(`
    SELECT (SELECT count(*) FROM (TABLE strandfast_segments EXCEPT
        (TABLE last.strandfast_segments UNION TABLE before.strandfast_segments UNION TABLE pushed.strandfast_segments)) f) AS foreign,
      (SELECT count(*) FROM last.strandfast_segments) - (SELECT count(*) FROM strandfast_segments) AS fewer,
      (SELECT count(*) FROM last.strandfast_segments l
        WHERE NOT EXISTS (SELECT 1 FROM strandfast_segments s WHERE (s.shard, s.segment, s.part) = (l.shard, l.segment, l.part))
        AND l.segment <= (SELECT max(segment) FROM strandfast_segments s WHERE s.shard = l.shard)) AS gaps`)
  const [{ foreign, fewer, gaps } = { foreign: '1', fewer: '0', gaps: '0' }] = rows
  return Number(foreign) === 0 && Number(fewer) > 0 && Number(gaps) === 0 ? 'an earlier truth' : 'the truth'
}

/** Bytes are long. */
function shortened(sql: string): string {
  return sql.replaceAll(/\\x([0-9a-f]{40})[0-9a-f]+/g, '\\x$1…')
}
