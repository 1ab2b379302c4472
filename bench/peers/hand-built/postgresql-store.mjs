import { Pool } from 'pg'
import { beginning, follow } from './chain.mjs'

/** On two cores 8, 16 and 24 are equally fast, and 64 is slower. */
const CONNECTIONS = 24
const tables = `
  CREATE TABLE heads (agent text PRIMARY KEY, seq bigint NOT NULL, hash bytea NOT NULL);
  CREATE TABLE chained (agent text, seq bigint, taken_at text NOT NULL, body jsonb NOT NULL,
    hash bytea NOT NULL, signature bytea NOT NULL, PRIMARY KEY (agent, seq))`
const lockHead = { name: 'lock', text: 'SELECT seq, hash FROM heads WHERE agent = $1 FOR UPDATE' }
const write = {
  name: 'write',
  text: `WITH head AS (UPDATE heads SET seq = $2, hash = $5 WHERE agent = $1)
    INSERT INTO chained (agent, seq, taken_at, body, hash, signature) VALUES ($1, $2, $3, $4, $5, $6)`,
}

/**
 * Strands in PostgreSQL: a transaction for each record, which holds a lock on the head of its strand.
 * @param {string} connectionString of an empty database
 * @param {Buffer} secretKey
 * @returns {Promise<import('./server.mjs').Store>}
 */
export async function openPostgresqlStore(connectionString, secretKey) {
  const pool = new Pool({ connectionString, max: CONNECTIONS })
  await pool.query(tables)

  async function append({ agent, body }) {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const { rows } = await client.query({ ...lockHead, values: [agent] })
      if (rows.length === 0) throw new Error(`There is no agent ${agent}`)
      const record = follow({ seq: Number(rows[0].seq), hash: rows[0].hash }, { agent, body }, secretKey)
      const { seq, takenAt, hash, signature } = record
      await client.query({ ...write, values: [agent, seq, takenAt, body, hash, signature] })
      await client.query('COMMIT')
      return record
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }

  return {
    append,
    async reset(agents) {
      await pool.query('TRUNCATE heads, chained')
      const values = [agents, beginning.seq, beginning.hash]
      await pool.query('INSERT INTO heads SELECT unnest($1::text[]), $2, $3', values)
    },
    async read(agent) {
      const text =
        'SELECT agent, seq::int, taken_at AS "takenAt", body, hash, signature FROM chained WHERE agent = $1 ORDER BY seq'
      return (await pool.query(text, [agent])).rows
    },
    count: async () => (await pool.query('SELECT count(*)::int AS count FROM chained')).rows[0].count,
    close: () => pool.end(),
  }
}
