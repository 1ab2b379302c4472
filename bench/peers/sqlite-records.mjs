import Database from 'better-sqlite3'

/**
 * Opens a table of records whose commits are on disk before they return.
 * @param {string} file created if it does not exist
 * @returns {{insertAll: (rows: {agent: string, body: string}[]) => void, count: () => number, close: () =>
 *   void}} `insertAll`: in one transaction
 */
export function openRecords(file) {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(
    'CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, agent TEXT NOT NULL, body TEXT NOT NULL)',
  )
  const insert = database.prepare('INSERT INTO records (agent, body) VALUES (?, ?)')
  const insertAll = database.transaction((rows) => {
    for (const { agent, body } of rows) insert.run(agent, body)
  })
  const counting = database.prepare('SELECT count(*) AS rows FROM records')
  return { insertAll, count: () => counting.get().rows, close: () => database.close() }
}
