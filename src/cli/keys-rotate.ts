import { boundedText, describeRequestError, refusalOf } from './server-answer.js'
import { fetchReporting } from './server-client.js'
import { command, fail, exitCodes } from './command.js'
import { printable } from './printable.js'
import { SERVER_USAGE, serverOf, serverOptions } from './server-url.js'

const USAGE = `Usage: strandfast keys rotate [--organism ID]
Makes the running server sign users' tokens with its next key; with --organism, the tokens of that organism. Tokens issued before
remain valid until they expire.
${SERVER_USAGE}`

/** Milliseconds that the server may take to respond. */
const TIMEOUT_MS = 30_000

/** Maximum length of the response. */
const RESPONSE_BYTES_MAX = 65_536

/**
 * Rotates the key that signs users' tokens (docs/SIGN-IN.md).
 * @returns the exit code: 0 rotated, 1 the server refused or cannot be reached, 78 wrong usage
 */
export const keysRotateCommand = command({
  usage: USAGE,
  action: 'rotate',
  options: { organism: { type: 'string' }, ...serverOptions },
  read({ organism, ...values }) {
    const { url, key } = serverOf(values)
    if (key === undefined)
      return "Expected --api-key or SERVICE_ROOT_API_KEY, or --data-dir on the server's machine"
    return { url, key, organism }
  },
  async run({ url, key, organism }) {
    const path = organism === undefined ? '/v1/auth' : `/v1/organisms/${encodeURIComponent(organism)}/auth`
    const refused = (detail: string) => fail(`The key was not rotated: ${detail}`)
    try {
      const response = await fetchReporting([url])(`${url}${path}/keys/rotate`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      if (!response.ok) return refused(await refusalOf(response))
      process.stdout.write(`${printable(await boundedText(response, RESPONSE_BYTES_MAX))}\n`)
      return exitCodes.fine
    } catch (error) {
      return refused(describeRequestError(error, url))
    }
  },
})
