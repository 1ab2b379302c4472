import { pick, seededRandom } from '../../../../scripts/crash-loop/seeded-random.mjs'
import { arenas } from './arenas.js'
import { draw, type Kind, kinds } from './attacks.js'
import type { HostileCluster } from './hostile-cluster.js'
import type { Allowed } from './oracle.js'
import { inOne } from './tables.js'

const TRIES = 5

/**
 * Runs attacks one after another, and continues after a finding.
 * @returns what was neither the truth nor a refusal
 */
export async function hostileRounds(
  hostile: HostileCluster,
  { rounds, seed, report }: { rounds: number; seed: number; report(line: string): void },
): Promise<string[]> {
  const found: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const random = seededRandom(seed + round)
    const kind = kinds[(seed + round) % kinds.length] ?? 'flip'
    const turn = Math.floor((seed + round) / kinds.length)
    const arenaName = pick(random, arenasOf(kind))
    const arena = arenas[arenaName]
    await hostile.restore()
    const sql: string[] = []
    const attack = async () => {
      // The tables reject some changes.
      for (let tries = 0; tries < TRIES; tries += 1) {
        const drawn = await draw(kind, { database: hostile.database, random, turn: turn + tries })
        if (drawn.length > 0 && (await isAccepted(inOne(hostile.database, drawn)))) {
          sql.push(...drawn)
          return
        }
      }
    }
    const faults = await arena(hostile, attack, () => allowedBy(hostile)).catch((error: unknown) => [
      `It failed: ${String(error)}`,
    ])
    report(
      `round ${round + 1}/${rounds}, seed ${seed + round}: ${kind}, ${arenaName}: ${faults.length === 0 ? 'well' : 'FOUND'}`,
    )
    for (const statement of sql) report(`  ${shortened(statement)}`)
    for (const one of faults) report(`  FOUND ${one}`)
    found.push(
      ...faults.map(
        (one) => `${kind}, ${arenaName}, seed ${seed + round}: ${one}; ${sql.map(shortened).join('; ')}`,
      ),
    )
  }
  return found
}

async function isAccepted(change: Promise<void>): Promise<boolean> {
  try {
    await change
    return true
  } catch {
    return false
  }
}

/**
 * The arenas for a kind of attack. Nodes with a fresh start and pulls read everything again; the others only
 * see changes while they run, or since they stopped.
 */
function arenasOf(kind: Kind): readonly ArenaName[] {
  if (kind === 'edit as it is written') return ['following', 'running']
  if (kind === 'change the schema') return ['restart', 'running', 'take-over', 'pull']
  if (kind === 'edit addresses') return ['following', 'take-over']
  return arenaNames
}

type ArenaName = keyof typeof arenas
/** The first ones occur more often. */
const arenaNames: readonly ArenaName[] = [
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
 * What a node without prior knowledge may serve: less, if the logs are prefixes of what they were. Rows of an
 * earlier moment contain bodies that were erased since.
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

/** Shortens long byte strings. */
function shortened(sql: string): string {
  return sql.replaceAll(/\\x([0-9a-f]{40})[0-9a-f]+/g, '\\x$1…')
}
