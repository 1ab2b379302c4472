import { type ClusterStatements, statementsOf } from '../../../src/cluster/database/statements.js'
import {
  type Breaches,
  gap,
  race,
  type RegisterRound,
  type Subject,
  unreplicated,
} from './register-rounds.js'
import { withoutNotices } from './without-notices.js'

/** A register with one broken rule, and a round that reveals it. */
export interface PlantedFault extends Subject {
  name: string
  round(round: RegisterRound): Promise<Breaches>
}

const statements = statementsOf('test')
const broken = (changes: Partial<ClusterStatements>): ClusterStatements => ({ ...statements, ...changes })
const columns = '(shard, segment, part, hash, header, blocks, state)'
const values = '$1::integer, $2::bigint + 1, 0, $4::bytea, $5::text, $6::bytea, $7::bytea'

/** The rules of cluster logs that concern the register, each of them broken. */
export const plantedFaults: readonly PlantedFault[] = [
  {
    name: 'no chain condition',
    statements: broken({
      append: `INSERT INTO test_segments ${columns} SELECT ${values} WHERE $3::bytea IS NOT NULL`,
    }),
    round: gap,
  },
  {
    name: 'ON CONFLICT DO UPDATE',
    statements: broken({
      append: `${statements.append} ON CONFLICT (shard, segment, part)
        DO UPDATE SET hash = excluded.hash, header = excluded.header`,
    }),
    round: race,
  },
  {
    name: 'dropped warnings',
    statements,
    filter: withoutNotices,
    round: (round) => unreplicated(round, 'pg_cancel_backend'),
  },
  {
    name: 'a read-only confirmation',
    statements: broken({
      confirm: 'SELECT 1 FROM test_segments WHERE shard = $1 AND segment = $2 AND part = 0 AND hash = $3',
    }),
    round: (round) => unreplicated(round, 'pg_terminate_backend'),
  },
  {
    name: 'commits that do not wait for a standby',
    statements: broken({
      append: `WITH local AS (SELECT set_config('synchronous_commit', 'local', true))
        INSERT INTO test_segments ${columns} SELECT shard, segment + 1, 0, $4::bytea, $5::text, $6::bytea, $7::bytea
        FROM test_segments, local WHERE shard = $1 AND segment = $2 AND part = 0 AND hash = $3`,
    }),
    round: (round) => unreplicated(round, 'nothing'),
  },
]
