import { boundedText, describeTrouble, refusalOf } from './server-answer.js'
import { exitCodes } from './exit-codes.js'
import { printable } from './printable.js'
import { readOptions, showUsage } from './read-options.js'
import { SERVER_USAGE, serverAsked, serverOptions, type ServerValues } from './server-url.js'

const USAGE = `Usage: strandfast keys rotate [--organism ID]
Has the running server sign users' tokens by its next key, of an organism where one is named. Tokens that are out stay
good until they expire.
${SERVER_USAGE}`

/** Milliseconds that the server may take. */
const PATIENCE_MS = 30_000

/** Bytes of its answer. */
const ANSWER_BYTES_MAX = 65_536

/**
 * Rotates the key that signs users' tokens (docs/OPERATIONS.md, Signing people in).
 * @returns the exit code: 0 rotated, 1 the server refused or cannot be reached, 78 wrong usage
 */
export async function keysCommand(args: string[]): Promise<number> {
  const [action, ...rest] = args
  const options = readOptions(action === 'rotate' ? rest : args, {
    organism: { type: 'string' },
    ...serverOptions,
  })
  if (!options.ok) return showUsage(USAGE, options)
  if (action !== 'rotate') return showUsage(USAGE, { help: false, fault: 'Expected: rotate' })
  const { organism } = options.values
  const target = readTarget(options.values)
  if (typeof target === 'string') return showUsage(USAGE, { help: false, fault: target })
  const below = organism === undefined ? '/v1/auth' : `/v1/organisms/${encodeURIComponent(organism)}/auth`
  try {
    const response = await fetch(`${target.base}${below}/keys/rotate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${target.key}` },
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    if (!response.ok) return fail(await refusalOf(response))
    process.stdout.write(`${printable(await boundedText(response, ANSWER_BYTES_MAX))}\n`)
    return exitCodes.fine
  } catch (error) {
    return fail(describeTrouble(error, target.base))
  }
}

/** Where the server is and the key for it; a text says what is missing. */
function readTarget(values: ServerValues): { base: string; key: string } | string {
  const server = serverAsked(values)
  if (typeof server === 'string') return server
  const { url: base, key } = server
  if (key === undefined)
    return 'Expected --key or SERVICE_ROOT_API_KEY, or --data-dir on the machine of the server'
  return { base, key }
}

function fail(detail: string): number {
  process.stderr.write(`The key was not rotated: ${detail}\n`)
  return exitCodes.foundWrong
}
