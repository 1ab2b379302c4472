import { type ParseArgsConfig, parseArgs } from 'node:util'

/** What `parseArgs` of Node makes of a configuration. */
export type ParsedArgs<T extends ParseArgsConfig> = ReturnType<typeof parseArgs<T>>

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
