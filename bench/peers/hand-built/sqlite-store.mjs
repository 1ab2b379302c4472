import Database from 'better-sqlite3'
import { beginning, follow } from './chain.mjs'

/**
 * Strands in SQLite: all records that have arrived within a turn of the event loop in one transaction. The
 * heads of the strands are in memory as well, as only this process writes.
 * @param {string} file of a new database
 * @param {Buffer} secretKey
 * @returns {import('./server.mjs').Store}
 */
export function openSqliteStore(file, secretKey) {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(
    `CREATE TABLE chained (agent TEXT, seq INTEGER, takenAt TEXT NOT NULL, body TEXT NOT NULL,
      hash BLOB NOT NULL, signature BLOB NOT NULL, PRIMARY KEY (agent, seq)) WITHOUT ROWID`,
  )
  const insert = database.prepare('INSERT INTO chained VALUES (?, ?, ?, ?, ?, ?)')
  const insertAll = database.transaction((records) => {
    for (const { agent, seq, takenAt, body, hash, signature } of records)
      insert.run(agent, seq, takenAt, JSON.stringify(body), hash, signature)
  })
  const readAll = database.prepare('SELECT * FROM chained WHERE agent = ? ORDER BY seq')
  const countAll = database.prepare('SELECT count(*) AS count FROM chained')
  let heads = new Map()
  let pending = []

  function commit() {
    const group = pending
    pending = []
    try {
      insertAll(group.map(({ record }) => record))
    } catch (error) {
      // The heads in memory are ahead of the disk from here on.
      process.stderr.write(`${error.stack}\n`)
      process.exit(1)
    }
    for (const { record, resolve } of group) resolve(record)
  }

  return {
    append({ agent, body }) {
      const record = follow(heads.get(agent), { agent, body }, secretKey)
      heads.set(agent, record)
      if (pending.length === 0) setImmediate(commit)
      return new Promise((resolve) => {
        pending.push({ record, resolve })
      })
    },
    async reset(agents) {
      database.exec('DELETE FROM chained')
      heads = new Map(agents.map((agent) => [agent, beginning]))
    },
    read: async (agent) => readAll.all(agent).map((record) => ({ ...record, body: JSON.parse(record.body) })),
    count: async () => countAll.get().count,
    close: async () => database.close(),
  }
}
