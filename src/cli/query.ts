import type { NucleotideRecord, PagedQueryBody, WhereCondition } from '../client/types.js'
import { command, fail, exitCodes } from './command.js'
import { type Columns, FORMAT_USAGE, type Format, formatOf, formatOption, timeCell } from './output.js'
import { printable } from './printable.js'
import { describeRequestError, isClosedPipe } from './server-answer.js'
import { clientOf, printWarning } from './server-client.js'
import { printAnswer, tableAnswer } from './server-command.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'

const LIMIT_DEFAULT = '20'

const USAGE = `Usage: strandfast query NAME [--where CONDITION]… [--type TYPE]… [--from TIME] [--to TIME] [--limit N] [--oldest]
Prints the newest records of an agent or a collection: ${LIMIT_DEFAULT}, or --limit. With --oldest, the oldest.
CONDITION compares a field of the body; a record must meet all conditions: 'celsius>20', 'sensor=roof', 'place.floor<=3',
'state!=new', 'state in ["new","open"]', 'note contains late', 'note starts_with Re:', 'note' (exists), '!note' (does not exist).
A value is read as JSON if it is JSON, otherwise as text. Before an operator, 'ci' ignores case: 'city ci = paris', 'note ci contains
late'. A field that begins with / is a JSON Pointer: '/labels/app.kubernetes.io~1name=web'.
TIME is ISO 8601 or Unix milliseconds. TYPE may end in *.
${FORMAT_USAGE}${SERVERS_USAGE}`

const CONDITION_OPERATORS = '=, !=, <, <=, >, >=, in, contains, starts_with'

/** Maximum number of records of one page; a query fetches as many pages as it needs. */
const PAGE_RECORDS_MAX = 1_000

interface QueryRequest extends ServerTargets {
  name: string
  limit: number
  body: PagedQueryBody
  format: Format
}

/** The columns of records for people. The body is the last one, because it may be long. */
const recordColumns: Columns<Omit<NucleotideRecord, 'data'>> = {
  seq: ({ seq }) => seq,
  time: ({ timestamp_ms: timeMs }) => timeCell(timeMs),
  type: ({ type }) => type,
  body: ({ payload }) => JSON.stringify(payload),
}

/**
 * Prints the records that match conditions (docs/OPERATIONS.md, Command line).
 * @returns the exit code: 0 printed, 1 the server refused or cannot be reached, 78 wrong usage
 */
export const queryCommand = command({
  usage: USAGE,
  options: {
    ...serverOptions,
    ...formatOption,
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
    if (!/^[1-9]\d{0,8}$/.test(values.limit)) return 'Expected --limit to be an integer from 1'
    const where = values.where.map((text) => parseCondition(text) ?? text)
    const wrong = where.find((condition) => typeof condition === 'string')
    if (typeof wrong === 'string')
      return `Expected --where to be a condition such as 'celsius>20' (${CONDITION_OPERATORS}; quote a text that begins with an operator as "…"), got ${printable(wrong)}`
    const server = serversOf(values)
    const limit = Number(values.limit)
    const conditions = where.filter((condition): condition is WhereCondition => typeof condition !== 'string')
    const body = bodyOf({ ...values, limit, where: conditions })
    return { name, limit, body, format: formatOf(values.format), ...server }
  },
  async run(request) {
    try {
      await printAnswer(tableAnswer(recordsOf(request), recordColumns, 'No records match'), request)
      return exitCodes.fine
    } catch (error) {
      if (isClosedPipe(error)) return exitCodes.fine
      return fail(`The query failed: ${describeRequestError(error, request.urls)}`)
    }
  },
})

/** The records without `data`, which the client adds. */
async function* recordsOf(request: QueryRequest): AsyncGenerator<Omit<NucleotideRecord, 'data'>> {
  const { name, body, limit } = request
  let remaining = limit
  for await (const { data: _data, ...record } of clientOf(request)
    .agent(name)
    .queryAll(body, { onWarning: printWarning })) {
    yield record
    if (--remaining === 0) return
  }
}

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

/** The operators as written on a command line; longer ones first. */
const operators = [
  ['>=', 'gte'],
  ['<=', 'lte'],
  ['!=', 'ne'],
  ['=', 'eq'],
  ['>', 'gt'],
  ['<', 'lt'],
] as const

/**
 * Reads a condition such as `celsius>20`, `sensor=roof`, `state in ["new","open"]`, `note contains late`,
 * `note ci starts_with re:`, `note` (exists) or `!note` (does not exist). A value is read as JSON if it is
 * JSON, otherwise as text. A text must not begin with an operator: `==5` and `=~x` are operators of other
 * languages, which would be compared as texts here.
 * @returns undefined if the text is not a condition
 */
export function parseCondition(text: string): WhereCondition | undefined {
  const [, word = '', ci, op, operand = ''] =
    /^([^\s=<>!]+)( ci)? (in|contains|starts_with) (.+)$/s.exec(text) ?? []
  if (op === 'contains' || op === 'starts_with' || (op === 'in' && /^\[.*\]$/s.test(operand))) {
    const read = valueOf(operand)
    const value = op === 'starts_with' && typeof read !== 'string' ? operand : read
    return { field: word, op, value, ...(ci !== undefined && { ci: true }) }
  }
  const [found] = operators
    .map(([sign, op]) => ({ sign, op, at: text.indexOf(sign) }))
    .filter(({ at }) => at > 0)
    // The first operator in the text; of two at the same position, the longer one.
    .sort((a, b) => a.at - b.at || b.sign.length - a.sign.length)
  if (found !== undefined) {
    const [, field = '', ci] = /^(.*?)(\s+ci)?\s*$/s.exec(text.slice(0, found.at)) ?? []
    const value = text.slice(found.at + found.sign.length).trim()
    if (!/^[^\s=<>!]*[^\s=<>!~]$/.test(field.trim()) || /^[=<>!~]/.test(value)) return undefined
    return { field: field.trim(), op: found.op, value: valueOf(value), ...(ci !== undefined && { ci: true }) }
  }
  const existence = /^(!?)([^\s=<>!]+)$/.exec(text)
  return existence === null
    ? undefined
    : { field: existence[2] ?? '', op: 'exists', value: existence[1] === '' }
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
