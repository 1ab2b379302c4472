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
 * Verifies a saved strand with the command line, in a process that has only the file and the public key.
 * @param {string} file
 * @param {string} publicKey hex
 * @returns {Promise<{records: number, secs: number, output: string}>} `records` is 0 if the strand does not
 * verify
 */
export async function verifyOffline(file, publicKey) {
  const startMs = performance.now()
  const stdio = ['ignore', 'pipe', 'inherit']
  const child = spawn(process.execPath, [command, 'verify', file, '--public-key', publicKey], { stdio })
  const exited = once(child, 'exit')
  let output = ''
  for await (const piece of child.stdout.setEncoding('utf8')) output += piece
  const [code] = await exited
  const records = code === 0 ? Number(/^VERIFIED (\d+) records/.exec(output)?.[1] ?? 0) : 0
  return { records, secs: (performance.now() - startMs) / 1_000, output }
}
