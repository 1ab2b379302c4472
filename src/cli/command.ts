import { type ParseArgsConfig, parseArgs } from 'node:util'

/** The exit codes of the command line (docs/OPERATIONS.md, Command line). */
export const exitCodes = {
  fine: 0,
  foundWrong: 1,
  /** A file that is named cannot be read (EX_NOINPUT of sysexits.h). */
  noInput: 66,
  /** The server is away or busy: try again (EX_TEMPFAIL of sysexits.h). */
  tryAgain: 75,
  /** Wrong settings, wrong usage, or a data directory that cannot be used. */
  configuration: 78,
} as const

type Options = NonNullable<ParseArgsConfig['options']>

/** How a command is called, and what it does. */
interface CommandLine<T extends Options, Request extends object> {
  usage: string
  options: T
  /** The one word that stands before the options, such as `issue`. */
  action?: string
  /** Whether it takes arguments that are no options. */
  operands?: boolean
  /** What the arguments ask for. @returns a text where one of them is wrong, as an Error that it throws says */
  read(
    values: ParsedArgs<{ args: string[]; options: T; allowPositionals: boolean }>['values'],
    operands: string[],
  ): Request | string
  /** @returns the exit code */
  run(request: Request): Promise<number> | number
}

/** Makes a command of the command line: `--help` shows its usage, and wrong arguments end it with 78. */
export function command<const T extends Options, Request extends object>(
  line: CommandLine<T, Request>,
): (args: string[]) => Promise<number> {
  return async (args) => {
    const { usage, run } = line
    const help = isHelp(args)
    const request = help ? '' : read(line, args)
    return typeof request === 'string' ? showUsage(usage, { help, fault: request }) : run(request)
  }
}

function read<T extends Options, Request extends object>(
  { options, action, operands: allowPositionals = false, read: readRequest }: CommandLine<T, Request>,
  [...args]: string[],
): Request | string {
  if (action !== undefined && args[0] !== action)
    return `Expected: ${action}${args[0] === undefined ? '' : `, not ${args[0]}`}`
  if (action !== undefined) args.shift()
  try {
    const { values, positionals } = parseOnce({ args, options, allowPositionals })
    return readRequest(values, positionals)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Whether the arguments of a command ask for its usage. */
export function isHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h')
}

/**
 * Shows the usage if it was asked for, otherwise the fault, as one line that says where the usage is.
 * @returns the exit code
 */
export function showUsage(usage: string, { help, fault }: { help: boolean; fault: string }): number {
  if (help) {
    process.stdout.write(usage)
    return exitCodes.fine
  }
  const command = /^Usage: strandfast ([a-z]+)/.exec(usage)?.[1] ?? ''
  // Node goes on about arguments that begin with a hyphen.
  const shortened = fault.replace(/\. To specify a positional argument [^]*/, '')
  return fail(`${shortened}: strandfast ${command} --help shows the usage`, exitCodes.configuration)
}

/** Ends a command with a line on standard error. @returns the exit code */
export function fail(line: string, exitCode: number = exitCodes.foundWrong): number {
  process.stderr.write(`${line}\n`)
  return exitCode
}

/** What `parseArgs` of Node makes of a configuration. */
type ParsedArgs<T extends ParseArgsConfig> = ReturnType<typeof parseArgs<T>>

/**
 * `parseArgs` of Node, which silently takes the last value of an option that is given twice: here that is an error.
 * @throws Error that says what is wrong with the arguments
 */
export function parseOnce<T extends ParseArgsConfig>(config: T): ParsedArgs<T> {
  const parsed = parseArgs(config)
  const { args = [], options = {}, allowPositionals = false }: ParseArgsConfig = config
  const { tokens } = parseArgs({ args, options, allowPositionals, tokens: true })
  const seen = new Set<string>()
  for (const token of tokens) {
    if (token.kind !== 'option' || token.value === undefined || options[token.name]?.multiple === true)
      continue
    if (seen.has(token.name)) throw new Error(`Expected --${token.name} once`)
    seen.add(token.name)
  }
  return parsed
}
