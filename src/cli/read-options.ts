import type { ParseArgsConfig } from 'node:util'
import { type ParsedArgs, parseOnce } from '../settings/parse-once.js'
import { exitCodes } from './exit-codes.js'

type Options = NonNullable<ParseArgsConfig['options']>
type Values<T extends Options> = ParsedArgs<{ options: T }>['values']

/** What the arguments of a command say, or the exit code it ends with at once. */
export type ReadOptions<T extends Options> =
  | { ok: true; values: Values<T> }
  | { ok: false; help: boolean; fault: string }

/** Reads the options of a command that takes no other arguments. `--help` ends it. */
export function readOptions<const T extends Options>(args: string[], options: T): ReadOptions<T> {
  if (args.includes('--help') || args.includes('-h')) return { ok: false, help: true, fault: '' }
  try {
    return { ok: true, values: parseOnce({ args, options }).values }
  } catch (error) {
    return { ok: false, help: false, fault: error instanceof Error ? error.message : String(error) }
  }
}

/**
 * Shows the usage if it was asked for, otherwise the fault, as one line that says where the usage is.
 * @returns the exit code
 */
export function showUsage(usage: string, asked: { help: boolean; fault: string }): number {
  if (asked.help) {
    process.stdout.write(usage)
    return exitCodes.fine
  }
  const command = /^Usage: strandfast ([a-z]+)/.exec(usage)?.[1] ?? ''
  process.stderr.write(`${shortened(asked.fault)}: strandfast ${command} --help shows the usage\n`)
  return exitCodes.configuration
}

/** The first sentence, without the full stop: Node goes on about arguments that begin with a hyphen. */
function shortened(fault: string): string {
  return fault.replace(/\. To specify a positional argument [^]*/, '')
}
