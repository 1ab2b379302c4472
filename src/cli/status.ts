import { ServiceClient } from '../client/service-client.js'
import { command, exitCodes, fail } from './command.js'
import { printable } from './printable.js'
import { describeRequestError } from './server-answer.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'

const USAGE = `Usage: strandfast status NAME [--field FIELD]
Prints the status of an agent or collection as one line of JSON: its zone, public key, strand, number of records and chain head. --field
prints one of these alone, such as public_key.
${SERVERS_USAGE}`

interface StatusRequest extends ServerTargets {
  name: string
  field: string | undefined
}

/**
 * Prints the status of an agent (docs/OPERATIONS.md, Command line).
 * @returns the exit code: 0 printed, 1 the server refused or cannot be reached, or there is no such field, 78
 * wrong usage
 */
export const statusCommand = command({
  usage: USAGE,
  options: { ...serverOptions, field: { type: 'string' } },
  operands: true,
  read({ field, ...values }, [name, ...more]): StatusRequest | string {
    if (name === undefined || more.length > 0) return 'Expected one NAME'
    const server = serversOf(values)
    return typeof server === 'string' ? server : { name, field, ...server }
  },
  async run({ name, field, urls, key }) {
    try {
      const status = await new ServiceClient({ url: urls, apiKey: key }).agent(name).status()
      if (field === undefined) return print(JSON.stringify(status))
      const [, value] = Object.entries(status).find(([member]) => member === field) ?? []
      if (value === undefined)
        return fail(`Unknown field ${printable(field)}, expected one of ${Object.keys(status).join(', ')}`)
      return print(typeof value === 'string' ? value : JSON.stringify(value))
    } catch (error) {
      return fail(`The status of ${printable(name)} could not be read: ${describeRequestError(error, urls)}`)
    }
  },
})

function print(line: string): number {
  process.stdout.write(`${printable(line)}\n`)
  return exitCodes.fine
}
