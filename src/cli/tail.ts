import { ServiceClient } from '../client/service-client.js'
import type { Subscription, SubscribeOptions } from '../client/subscription.js'
import type { StreamEvent } from '../client/types.js'
import { command, fail, exitCodes } from './command.js'
import {
  type Columns,
  FORMAT_USAGE,
  type Format,
  formatOf,
  formatOption,
  printLine,
  Table,
  timeCell,
} from './output.js'
import { describeError } from './printable.js'
import { describeRequestError, isClosedPipe } from './server-answer.js'
import { printWarning } from './server-client.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'
import { interruptible } from './stop-signals.js'

const USAGE = `Usage: strandfast tail [NAME…] [--since TIME] [--filter FIELD]
Prints records of the given agents or collections, or of all, as they are written, until Ctrl-C. After a lost connection it
continues with the record after the last one printed, without a gap. --since starts with the records written since
TIME, which is ISO 8601 or Unix milliseconds. With one NAME, --filter prints only records whose body has the field.
${FORMAT_USAGE}${SERVERS_USAGE}`

interface TailRequest extends ServerTargets {
  names: string[]
  since: string | undefined
  filter: string | undefined
  format: Format
}

const eventColumns: Columns<StreamEvent> = {
  agent: ({ agent }) => agent,
  seq: ({ seq }) => seq,
  time: ({ timestamp_ms: timeMs }) => timeCell(timeMs),
  type: ({ type }) => type,
  body: ({ payload }) => JSON.stringify(payload),
}

/**
 * Follows strands (docs/OPERATIONS.md, Command line).
 * @returns the exit code: 0 after Ctrl-C or when the output pipe is closed, 1 the server refused, 78 wrong
 * usage
 */
export const tailCommand = command({
  usage: USAGE,
  options: { ...serverOptions, ...formatOption, since: { type: 'string' }, filter: { type: 'string' } },
  operands: true,
  read(values, names): TailRequest | string {
    const { since, filter } = values
    if (filter !== undefined && names.length !== 1) return 'Expected exactly one NAME with --filter'
    return { ...serversOf(values), names, since, filter, format: formatOf(values.format) }
  },
  run: (request) =>
    interruptible(async (signal, stop) => {
      // A closed pipe shows as an error of a later write, possibly while the stream waits for the next
      // record.
      process.stdout.once('error', stop)
      const refusal = await follow(request, signal)
      if (refusal === undefined || isClosedPipe(refusal)) return exitCodes.fine
      return fail(`The stream ended: ${describeRequestError(refusal, request.urls)}`)
    }),
})

/** Follows strands until the signal. @returns the error if the server refuses, otherwise undefined */
function follow(request: TailRequest, signal: AbortSignal): Promise<unknown> {
  const { urls, key, since } = request
  const client = new ServiceClient({
    url: urls,
    apiKey: key,
    onWarning: printWarning,
  })
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    let isLost = false
    const options: SubscribeOptions = {
      since,
      signal,
      onError: resolve,
      onReconnect(cause) {
        if (!isLost) logLine(`The connection was lost, reconnecting: ${describeError(cause)}`)
        isLost = true
      },
      onOpen() {
        if (isLost) logLine('Reconnected')
        isLost = false
      },
    }
    subscribe(client, request, options)
  })
}

function subscribe(
  client: ServiceClient,
  { names, filter, format }: TailRequest,
  options: SubscribeOptions,
): Subscription {
  const [name, ...more] = names
  const print = printerOf(format)
  if (name === undefined) return client.subscribeGlobal(print, options)
  if (more.length > 0) return client.subscribeGlobal(print, { ...options, agents: names })
  return client.subscribeAgent(name, print, { ...options, filter })
}

/** A function that prints an event, and waits for a slow reader, so that the stream waits too. */
function printerOf(format: Format): (event: StreamEvent) => Promise<void> {
  if (format === 'json') return (event) => printLine(JSON.stringify(event))
  const table = new Table(eventColumns)
  return (event) => table.print([event])
}

function logLine(line: string): void {
  process.stderr.write(`${line}\n`)
}
