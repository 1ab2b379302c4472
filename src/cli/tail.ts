import { once } from 'node:events'
import { ServiceClient } from '../client/service-client.js'
import type { Subscription, SubscribeOptions } from '../client/subscription.js'
import type { StreamEvent } from '../client/types.js'
import { command, fail, exitCodes } from './command.js'
import { describeError, printable } from './printable.js'
import { describeTrouble } from './server-answer.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'
import { interruptible } from './stop-signals.js'

const USAGE = `Usage: strandfast tail [NAME…] [--since TIME] [--filter FIELD]
Prints records as they are written, as lines of JSON, until Ctrl-C: of the agents or collections named, or of all. Where the
connection is lost it goes on by itself from the last record, without a gap. --since prints first what was written from
then on: TIME is ISO 8601 or Unix milliseconds. --filter leaves out records of one NAME whose body lacks the field.
${SERVERS_USAGE}`

interface TailRequest extends ServerTargets {
  names: string[]
  since: string | undefined
  filter: string | undefined
}

/**
 * Follows strands (docs/OPERATIONS.md, Command line).
 * @returns the exit code: 0 after Ctrl-C or when nobody reads the output any more, 1 the server refused, 78 wrong usage
 */
export const tailCommand = command({
  usage: USAGE,
  options: { ...serverOptions, since: { type: 'string' }, filter: { type: 'string' } },
  operands: true,
  read(values, names): TailRequest | string {
    const { since, filter } = values
    if (filter !== undefined && names.length !== 1) return 'Expected one NAME with --filter'
    const server = serversOf(values)
    return typeof server === 'string' ? server : { names, since, filter, ...server }
  },
  run: (request) =>
    interruptible(async (signal, stop) => {
      // The reader of a pipe that was closed shows at the next write, which may be long in coming.
      process.stdout.once('error', stop)
      const refused = await followed(request, signal)
      if (refused === undefined) return exitCodes.fine
      return fail(`The stream ended: ${describeTrouble(refused, request.urls)}`)
    }),
})

/** Follows until the signal; resolves with the error of a server that refuses. */
function followed({ urls, key, names, since, filter }: TailRequest, signal: AbortSignal): Promise<unknown> {
  const client = new ServiceClient({ url: urls, apiKey: key })
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    let lost = false
    const options: SubscribeOptions = {
      since,
      signal,
      onError: resolve,
      onReconnect(cause) {
        if (!lost) tell(`The connection is lost, trying again: ${describeError(cause)}`)
        lost = true
      },
      onOpen() {
        if (lost) tell('Connected again')
        lost = false
      },
    }
    subscribe(client, { names, filter, options })
  })
}

function subscribe(
  client: ServiceClient,
  { names, filter, options }: { names: string[]; filter: string | undefined; options: SubscribeOptions },
): Subscription {
  const [name, ...more] = names
  if (name === undefined) return client.subscribeGlobal(print, options)
  if (more.length > 0) return client.subscribeGlobal(print, { ...options, agents: names })
  return client.subscribeAgent(name, print, { ...options, filter })
}

/** Prints an event; a slow reader makes the stream wait. */
async function print({ timestamp: _date, ...event }: StreamEvent): Promise<void> {
  if (process.stdout.write(`${printable(JSON.stringify(event))}\n`)) return
  await once(process.stdout, 'drain').catch(() => undefined)
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
