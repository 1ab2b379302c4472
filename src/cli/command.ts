import { type ParseArgsConfig, parseArgs } from 'node:util'

/** The exit codes of the command line (docs/OPERATIONS.md, Command line). */
export const exitCodes = {
  fine: 0,
  foundWrong: 1,
  /** An input file cannot be read (EX_NOINPUT of sysexits.h). */
  noInput: 66,
  /** The server or the database of the cluster cannot be reached: try again (EX_TEMPFAIL of sysexits.h). */
  tryAgain: 75,
  /** Wrong settings, wrong usage, or a data directory that cannot be used. */
  configuration: 78,
} as const

type Options = NonNullable<ParseArgsConfig['options']>

/** There is no server to use: neither an address was given, nor does the server of the data directory run. */
export class NoServerError extends Error {}

interface CommandDefinition<T extends Options, Request extends object> {
  usage: string
  options: T
  /** A word that must come before the options, such as `issue`. */
  action?: string
  /** Whether the command accepts arguments that are not options. */
  operands?: boolean
  /** The exit code if there is no server to use; 1 if absent. */
  noServerExitCode?: number
  /**
   * Reads the arguments.
   * @returns the request, or a text that says what is wrong.
   * @throws NoServerError; Error with such a text
   */
  read(
    values: ParsedArgs<{ args: string[]; options: T; allowPositionals: boolean }>['values'],
    operands: string[],
  ): Request | string
  /** @returns the exit code */
  run(request: Request): Promise<number> | number
}

/** Makes a command: `--help` prints its usage, and wrong arguments end it with exit code 78. */
export function command<const T extends Options, Request extends object>(
  line: CommandDefinition<T, Request>,
): (args: string[]) => Promise<number> {
  return async (args) => {
    const { usage, run } = line
    const help = isHelp(args)
    const request = help ? '' : read(line, args)
    if (request instanceof NoServerError) return fail(request.message, line.noServerExitCode)
    return typeof request === 'string' ? showUsage(usage, { help, fault: request }) : run(request)
  }
}

function read<T extends Options, Request extends object>(
  { options, action, operands: allowPositionals = false, read: readRequest }: CommandDefinition<T, Request>,
  [...args]: string[],
): Request | NoServerError | string {
  if (action !== undefined && args[0] !== action)
    return `Expected: ${action}${args[0] === undefined ? '' : `, not ${args[0]}`}`
  if (action !== undefined) args.shift()
  try {
    const { values, positionals } = parseOnce({ args, options, allowPositionals })
    return readRequest(values, positionals)
  } catch (error) {
    if (error instanceof NoServerError) return error
    return error instanceof Error ? error.message : String(error)
  }
}

/** Whether the arguments contain `--help` or `-h`. */
export function isHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h')
}

/**
 * Prints the usage if `help` is set, otherwise the fault with a hint at `--help`.
 * @returns the exit code
 */
export function showUsage(usage: string, { help, fault }: { help: boolean; fault: string }): number {
  if (help) {
    process.stdout.write(usage)
    return exitCodes.fine
  }
  const command = /^Usage: strandfast ([a-z]+)/.exec(usage)?.[1] ?? ''
  // Node adds a hint about arguments that begin with a hyphen.
  const shortened = fault.replace(/\. To specify a positional argument [^]*/, '')
  return fail(`${shortened}: see strandfast ${command} --help`, exitCodes.configuration)
}

/** Prints a line on standard error. @returns the exit code */
export function fail(line: string, exitCode: number = exitCodes.foundWrong): number {
  process.stderr.write(`${line}\n`)
  return exitCode
}

/**
 * The value of an option under its name, or under its former name, which still works with a warning.
 * @throws Error if both are given
 */
export function renamedOption<Former extends string, Name extends string>(
  values: Partial<Record<Former | Name, string | undefined>>,
  former: Former,
  name: Name,
): string | undefined {
  const value = values[former]
  if (value === undefined) return values[name]
  if (values[name] !== undefined) throw new Error(`Expected --${name} without --${former}, its former name`)
  process.stderr.write(`warning: --${former} is now --${name}\n`)
  return value
}

type ParsedArgs<T extends ParseArgsConfig> = ReturnType<typeof parseArgs<T>>

/**
 * Node's `parseArgs`, but an option given twice is an error; `parseArgs` silently takes the last value.
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
