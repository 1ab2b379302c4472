import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'

const command = fileURLToPath(new URL('../../dist/program/strandfast.js', import.meta.url))

/**
 * Saves the strand of an agent.
 * @param {import('../../dist/src/client/index.js').ServiceClient} client
 * @param {{agent: string, file: string}} what
 * @returns {Promise<{bytes: number, secs: number}>}
 */
export async function saveStrand(client, { agent, file }) {
  const startMs = performance.now()
  await pipeline(Readable.fromWeb(await client.exportStrand({ agent })), createWriteStream(file))
  return { bytes: (await stat(file)).size, secs: (performance.now() - startMs) / 1_000 }
}

/**
 * Checks a saved strand with the command line, in a process that has only the file and the public key, and no server.
 * @param {string} file
 * @param {string} publicKey hex
 * @returns {Promise<{records: number, secs: number, said: string}>} `records` is 0 when it does not verify
 */
export async function verifyOffline(file, publicKey) {
  const startMs = performance.now()
  const stdio = ['ignore', 'pipe', 'inherit']
  const child = spawn(process.execPath, [command, 'verify', file, '--key', publicKey], { stdio })
  const exited = once(child, 'exit')
  let said = ''
  for await (const piece of child.stdout.setEncoding('utf8')) said += piece
  const [code] = await exited
  const records = code === 0 ? Number(/^VERIFIED (\d+) records/.exec(said)?.[1] ?? 0) : 0
  return { records, secs: (performance.now() - startMs) / 1_000, said }
}
