import { type ServerAddress, call } from '../server/server.js'

/** Writes records in one batch. @returns their hashes */
export async function writeMany(
  server: ServerAddress,
  agent: string,
  bodies: readonly object[],
): Promise<string[]> {
  const records = bodies.map((data) => ({ data, type: 'reading' }))
  const { status, body } = await call(server, `POST /v1/collections/${agent}/records/batch`, {
    body: { records },
  })
  if (status !== 201) throw new Error(`Expected 201, got ${status} ${JSON.stringify(body)}`)
  return body.results.map(({ content_hash: hash }: { content_hash: string }) => hash)
}

/**
 * Creates an agent in zone free with an active, a deleted and an erased record, two sealed records and their
 * seal.
 */
export async function makeMixedStrand(server: ServerAddress, name: string): Promise<void> {
  await call(server, 'POST /v1/agents', { body: { name, zone: 'free' } })
  const [, deleted, erased] = await writeMany(
    server,
    name,
    [1, 2, 3].map((celsius) => ({ celsius, place: 'roof' })),
  )
  await call(server, `DELETE /v1/agents/${name}/records/${deleted}`)
  await call(server, `POST /v1/agents/${name}/records/${erased}/erase`)
  const records = [6, 7, 8].map((celsius) => ({ data: { celsius, place: 'cellar' }, type: 'reading' }))
  await call(server, `POST /v1/agents/${name}/records/batch?signing=group`, { body: { records } })
}
