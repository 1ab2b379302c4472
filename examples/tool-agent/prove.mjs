/**
 * Proves the tool calls of an agent offline, from an export of its strand and its public key:
 *
 *     node examples/tool-agent/prove.mjs EXPORT.ndjson PUBLIC_KEY
 *
 * Checks every link, hash, body and signature, then lists each tool call with the hash of its record. Take the
 * public key from another source than the export. Exit codes: 0 proved, 1 not proved, 2 wrong usage.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { verifyExport } from 'strandfast/client'

/** The tool call of a line of an export; undefined for any other record. */
function toolCallOf({ h, body }) {
  if (!h?.includes('\ntype otel/span\n') || body === undefined) return undefined
  const { name, attributes = [], status } = JSON.parse(body)
  const valueOf = (key) => attributes.find((one) => one.key === key)?.value.stringValue
  if (valueOf('gen_ai.operation.name') !== 'execute_tool') return undefined
  const outcome = status?.code === 2 ? `failed: ${status.message}` : valueOf('gen_ai.tool.call.result')
  return `${name} ${valueOf('gen_ai.tool.call.arguments')} ${outcome}`
}

async function main([file, publicKey]) {
  if (file === undefined || publicKey === undefined) {
    console.error('Usage: node examples/tool-agent/prove.mjs EXPORT.ndjson PUBLIC_KEY')
    return 2
  }
  const text = readFileSync(file, 'utf8')
  const verified = await verifyExport(text, { publicKey })
  if (!verified.ok) {
    console.error(`Not proved: ${verified.reason}`)
    return 1
  }
  for (const line of text.trimEnd().split('\n')) {
    const record = JSON.parse(line)
    const call = toolCallOf(record)
    if (call === undefined) continue
    const hash = createHash('sha256').update(`\0${record.h}`).digest('hex')
    console.log(`Proved: ${call}\n  record ${/^seq (\d+)$/m.exec(record.h)[1]}, hash ${hash}`)
  }
  return 0
}

process.exitCode = await main(process.argv.slice(2)).catch((error) => {
  console.error(error.message)
  return 1
})
