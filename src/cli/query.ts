import { once } from 'node:events'
import { ServiceClient } from '../client/service-client.js'
import type { PagedQueryBody, WhereCondition } from '../client/types.js'
import { command, fail, exitCodes } from './command.js'
import { printable } from './printable.js'
import { describeTrouble, isClosedPipe } from './server-answer.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'

const USAGE = `Usage: strandfast query NAME [--where CONDITION]… [--type TYPE]… [--from TIME] [--to TIME] [--limit N] [--oldest]
Prints records of an agent or a collection as lines of JSON, the newest first or, with --oldest, the oldest: 20, or --limit.
CONDITION compares a field of the body, all must hold: 'celsius>20', 'sensor=roof', 'place.floor<=3', 'state!=new',
'state in ["new","open"]', 'note' (it is there), '!note' (it is not). A value is JSON where it can be, otherwise text.
A field that begins with / is a JSON Pointer: '/labels/app.kubernetes.io~1name=web'.
TIME is ISO 8601 or Unix milliseconds. TYPE may end in *.
${SERVERS_USAGE}`

/** Comparisons that a condition can have. */
const CONDITION_SIGNS = '=, !=, <, <=, >, >=, in'

const LIMIT_DEFAULT = '20'

/** Records of one page, of which a query fetches as many as it needs. */
const PAGE_RECORDS_MAX = 1_000

interface QueryRequest extends ServerTargets {
  name: string
  limit: number
  body: PagedQueryBody
}

/**
 * Prints the records that meet conditions (docs/OPERATIONS.md, Command line).
 * @returns the exit code: 0 printed, 1 the server refused or cannot be reached, 78 wrong usage
 */
export const queryCommand = command({
  usage: USAGE,
  options: {
    ...serverOptions,
    where: { type: 'string', multiple: true, default: [] },
    type: { type: 'string', multiple: true },
    from: { type: 'string' },
    to: { type: 'string' },
    limit: { type: 'string', default: LIMIT_DEFAULT },
    oldest: { type: 'boolean', default: false },
  },
  operands: true,
  read(values, [name, ...more]): QueryRequest | string {
    if (name === undefined || more.length > 0) return 'Expected one NAME'
    if (!/^[1-9]\d{0,8}$/.test(values.limit)) return 'Expected a number from 1 up after --limit'
    const where = values.where.map((text) => parseCondition(text) ?? text)
    const wrong = where.find((condition) => typeof condition === 'string')
    if (typeof wrong === 'string')
      return `Expected a condition as 'celsius>20' after --where (${CONDITION_SIGNS}; a text that begins with a sign between "), not ${printable(wrong)}`
    const server = serversOf(values)
    if (typeof server === 'string') return server
    const limit = Number(values.limit)
    const conditions = where.filter((condition): condition is WhereCondition => typeof condition !== 'string')
    return { name, limit, body: bodyOf({ ...values, limit, where: conditions }), ...server }
  },
  async run({ name, limit, body, urls, key }) {
    const records = new ServiceClient({ url: urls, apiKey: key }).agent(name).queryAll(body, {
      onWarning: (warning) => process.stderr.write(`${printable(warning)}\n`),
    })
    try {
      let left = limit
      for await (const { data: _same, timestamp: _date, ...record } of records) {
        // On a terminal control characters in texts stay escaped, as JSON has them.
        if (!process.stdout.write(`${printable(JSON.stringify(record))}\n`))
          await once(process.stdout, 'drain')
        if (--left === 0) break
      }
      return exitCodes.fine
    } catch (error) {
      if (isClosedPipe(error)) return exitCodes.fine
      return fail(`The query failed: ${describeTrouble(error, urls)}`)
    }
  },
})

interface Selection {
  where: WhereCondition[]
  type?: string[] | undefined
  from?: string | undefined
  to?: string | undefined
  limit: number
  oldest: boolean
}

function bodyOf({ where, type, from, to, limit, oldest }: Selection): PagedQueryBody {
  const selection = {
    limit: Math.min(limit, PAGE_RECORDS_MAX),
    order: oldest ? ('asc' as const) : ('desc' as const),
    ...(where.length > 0 && { where }),
    ...(type !== undefined && { types: type }),
  }
  if (from === undefined && to === undefined) return { type: 'latest', ...selection }
  return {
    type: 'time_range',
    ...selection,
    ...(from !== undefined && { from_ts: from }),
    ...(to !== undefined && { to_ts: to }),
  }
}

/** Comparisons as they are written on a command line; the longer ones first. */
const signs = [
  ['>=', 'gte'],
  ['<=', 'lte'],
  ['!=', 'ne'],
  ['=', 'eq'],
  ['>', 'gt'],
  ['<', 'lt'],
] as const

/**
 * Reads a condition such as `celsius>20`, `sensor=roof`, `state in ["new","open"]`, `note` (it exists) or `!note` (it does
 * not). A value is JSON where it can be, otherwise text, which begins with no sign: `==5` and `=~x` are operators of other
 * languages, and would be compared as texts here.
 * @returns undefined where it is none
 */
export function parseCondition(text: string): WhereCondition | undefined {
  const among = /^([^\s=<>!]+) in (\[.*\])$/s.exec(text)
  if (among !== null) return { field: among[1] ?? '', op: 'in', value: valueOf(among[2] ?? '') }
  const [found] = signs
    .map(([sign, op]) => ({ sign, op, at: text.indexOf(sign) }))
    .filter(({ at }) => at > 0)
    // The first sign in the text; where two begin there, the longer.
    .sort((one, other) => one.at - other.at || other.sign.length - one.sign.length)
  if (found !== undefined) {
    const field = text.slice(0, found.at).trim()
    const value = text.slice(found.at + found.sign.length).trim()
    if (!/^[^\s=<>!]*[^\s=<>!~]$/.test(field) || /^[=<>!~]/.test(value)) return undefined
    return { field, op: found.op, value: valueOf(value) }
  }
  const there = /^(!?)([^\s=<>!]+)$/.exec(text)
  return there === null ? undefined : { field: there[2] ?? '', op: 'exists', value: there[1] === '' }
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
