import type { parseArgs } from 'node:util'
import { isFileSystemError } from '../base/durable-file.js'
import type { ServiceClient } from '../client/service-client.js'
import { command, exitCodes, fail, isHelp, showUsage } from './command.js'
import {
  type Columns,
  FORMAT_USAGE,
  type Format,
  formatOf,
  formatOption,
  printLine,
  Table,
} from './output.js'
import { printable, printableLines } from './printable.js'
import { describeRequestError, isClosedPipe } from './server-answer.js'
import { clientOf } from './server-client.js'
import { SERVERS_USAGE, type ServerTargets, serverOptions, serversOf } from './server-url.js'

/** Options that every command of this kind accepts. */
const commonOptions = { ...serverOptions, ...formatOption, field: { type: 'string' } } as const

/** The options of all calls; each call names those that it accepts. */
const options = {
  ...commonOptions,
  agent: { type: 'string', multiple: true },
  'expires-in': { type: 'string' },
  organism: { type: 'string' },
  prefix: { type: 'string' },
  scope: { type: 'string', multiple: true },
  state: { type: 'string' },
  yes: { type: 'boolean' },
} as const

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values']

/** What a call gets. */
export interface CallRequest {
  client: ServiceClient
  /** As many as the call has operands; an absent optional one is empty. */
  operands: readonly string[]
  values: Values
}

export interface Answer {
  /** The answered objects, which `json` and `--field` print. */
  objects: AsyncIterable<object> | Iterable<object>
  /** Prints the objects for people; if absent, they are printed as indented JSON. */
  print?: () => Promise<void>
}

export interface ServerCall {
  /** The word after the name of the command, such as `list`. */
  word?: string
  /** Names of the operands; those that may be absent are in brackets. */
  operands?: readonly string[]
  options?: readonly (keyof typeof options)[]
  /** The beginning of the line that reports an error. */
  failed: string
  /** @returns what is wrong with the arguments, or undefined */
  check?: (values: Values) => string | undefined
  answer: (request: CallRequest) => Promise<Answer>
}

/** A command that sends requests to a server and prints the answers. */
export interface ServerCommand {
  /** The usage without the lines about options that all these commands accept. */
  usage: string
  calls: readonly ServerCall[]
}

/**
 * Runs a command.
 * @returns the exit code: 0 done, 1 the server refused or cannot be reached, 66 a file cannot be read, 78
 * wrong usage
 */
export async function runServerCommand({ usage, calls }: ServerCommand, args: string[]): Promise<number> {
  const fullUsage = `${usage}${FORMAT_USAGE}--field FIELD prints one member of each object alone.\n${SERVERS_USAGE}`
  const help = isHelp(args)
  const call = calls.find(({ word }) => word === undefined || word === args[0])
  if (help || call === undefined) {
    const found = args[0] === undefined ? '' : `, not ${printable(args[0])}`
    return showUsage(fullUsage, { help, fault: `Expected one of ${wordsOf(usage).join(', ')}${found}` })
  }
  return commandOf(call, fullUsage)(call.word === undefined ? args : args.slice(1))
}

/** The words of a usage that choose a call; those that another module runs have no call here. */
function wordsOf(usage: string): string[] {
  return [...usage.matchAll(/^(?:Usage:| +) strandfast [a-z]+ ([a-z]+)/gm)].map(([, word = '']) => word)
}

interface PrintRequest extends ServerTargets {
  format: Format
  operands: string[]
  values: Values
}

function commandOf(call: ServerCall, usage: string): (args: string[]) => Promise<number> {
  return command({
    usage,
    options,
    operands: true,
    read(values, operands): PrintRequest | string {
      const unknown = Object.keys(values).find((name) => !isAccepted(name, call))
      if (unknown !== undefined) return `Unknown option '--${unknown}'`
      const names = call.operands ?? []
      const required = names.filter((name) => !name.startsWith('['))
      if (operands.length < required.length || operands.length > names.length)
        return `Expected ${[call.word, ...names].join(' ').trim() || 'no operand'}`
      const fault = call.check?.(values)
      if (fault !== undefined) return fault
      return { ...serversOf(values), values, operands, format: formatOf(values.format) }
    },
    run: (request) => answerAndPrint(call, request),
  })
}

function isAccepted(name: string, call: ServerCall): boolean {
  return Object.hasOwn(commonOptions, name) || call.options?.some((one) => one === name) === true
}

async function answerAndPrint({ failed, answer }: ServerCall, request: PrintRequest): Promise<number> {
  const { urls, operands, values } = request
  try {
    const answered = await answer({ client: clientOf(request), operands, values })
    await printAnswer(answered, { format: request.format, field: values.field })
    return exitCodes.fine
  } catch (error) {
    if (isClosedPipe(error)) return exitCodes.fine
    const exitCode = isFileSystemError(error) ? exitCodes.noInput : exitCodes.foundWrong
    return fail(`${failed}: ${describeRequestError(error, urls)}`, exitCode)
  }
}

/** Prints an answer. @param how `field` prints this member of each object alone */
export async function printAnswer(
  answer: Answer,
  { format, field }: { format: Format; field?: string | undefined },
): Promise<void> {
  if (field === undefined && format === 'text' && answer.print !== undefined) return answer.print()
  for await (const object of answer.objects) {
    if (field !== undefined) await printLine(memberText(object, field))
    else if (format === 'json') await printLine(JSON.stringify(object))
    else process.stdout.write(`${printableLines(JSON.stringify(object, null, 2))}\n`)
  }
}

/** A member of an object, a text without quotes. @throws Error if there is no such member */
function memberText(object: object, field: string): string {
  const [, value] = Object.entries(object).find(([name]) => name === field) ?? []
  if (value === undefined)
    throw new Error(`Unknown field ${field}, expected one of ${Object.keys(object).join(', ')}`)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Rows that are printed together, so that their columns have one width. */
const BATCH_ROWS = 200

/** An answer that is a table for people. @param none the line for no rows */
export function tableAnswer<Row extends object>(
  rows: AsyncIterable<Row>,
  columns: Columns<Row>,
  none: string,
): Answer {
  return {
    objects: rows,
    async print() {
      const table = new Table(columns)
      let batch: Row[] = []
      for await (const row of rows) {
        batch.push(row)
        if (batch.length < BATCH_ROWS) continue
        await table.print(batch)
        batch = []
      }
      if (batch.length > 0) await table.print(batch)
      table.end(none)
    },
  }
}

/** An answer that is some lines for people. */
export function linesAnswer(object: object, lines: readonly string[]): Answer {
  return {
    objects: [object],
    async print() {
      for (const line of lines) await printLine(line)
    },
  }
}
