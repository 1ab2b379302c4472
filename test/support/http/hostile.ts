import { call, type ServerAddress } from '../server/server.js'

/** One operation of the OpenAPI document, with all its inputs. */
export interface Operation {
  method: string
  /** With `{name}` placeholders. */
  path: string
  /** Names of its query parameters. */
  query: readonly string[]
  /** An example of its JSON body; undefined if it takes none. */
  example: Record<string, unknown> | undefined
  /** It accepts any number of lines. */
  lines: boolean
}

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The operations in the OpenAPI document of a server. */
export async function operationsOf(server: ServerAddress): Promise<Operation[]> {
  const document: unknown = (await call(server, 'GET /openapi.json')).body
  const found: Operation[] = []
  const at = (value: unknown, ...keys: string[]): unknown =>
    keys.reduce((one: unknown, key) => (isObject(one) ? one[key] : undefined), value)
  const followed = (value: unknown): unknown => {
    const ref = at(value, '$ref')
    return typeof ref === 'string' ? at(document, ...ref.split('/').slice(1)) : value
  }
  const paths = at(document, 'paths')
  for (const [path, item] of Object.entries(isObject(paths) ? paths : {})) {
    for (const [method, operation] of Object.entries(isObject(item) ? item : {})) {
      if (!isObject(operation) || !['get', 'post', 'put', 'patch', 'delete'].includes(method)) continue
      const parameters = [at(item, 'parameters'), operation['parameters']].flat().map(followed)
      const named = parameters
        .filter((one) => at(one, 'in') === 'query')
        .map((one) => String(at(one, 'name')))
      const content = at(followed(operation['requestBody']), 'content')
      const examples = at(content, 'application/json', 'examples')
      const [first] = Object.values(isObject(examples) ? examples : {})
      const example = at(followed(first), 'value')
      found.push({
        method: method.toUpperCase(),
        path,
        query: named,
        example: isObject(example) ? example : undefined,
        lines: at(content, 'application/x-ndjson') !== undefined,
      })
    }
  }
  return found
}

/**
 * JSON texts of about `bytes` bytes, each expensive for some parser; the most expensive ones are not
 * adjacent.
 */
export function hostileJson(bytes: number): [name: string, text: string][] {
  const filled = (one: (n: number) => string) => {
    const parts: string[] = []
    for (let length = 0; length < bytes - 64; length += (parts.at(-1)?.length ?? 0) + 1)
      parts.push(one(parts.length))
    return parts.join(',')
  }
  const half = Math.floor(bytes / 2) - 64
  return [
    ['nothing but brackets', '['.repeat(half) + ']'.repeat(half)],
    ['objects within objects', `${'{"a":'.repeat(half / 3)}1${'}'.repeat(half / 3)}`],
    ['arrays that never end', '['.repeat(bytes - 64)],
    ['many members', `{${filled((n) => `"k${n}":${n}`)}}`],
    ['the same member again and again', `{${filled(() => '"a":0')}}`],
    ['many empty lists', `[${filled(() => '[]')}]`],
    ['many empty objects', `[${filled(() => '{}')}]`],
    ['many texts', `[${filled((n) => `"t${n}"`)}]`],
    ['many numbers with fractions', `[${filled((n) => String(n + 0.1))}]`],
    ['many members, the last first', `{${filled((n) => `"k${1_000_000 - n}":0`)}}`],
    ['a number without an end', '1'.repeat(bytes - 64)],
    ['a fraction without an end', `0.${'1'.repeat(bytes - 64)}`],
    ['a text without an end', `"${'a'.repeat(bytes - 64)}"`],
    ['a text of escapes', `"${String.raw`\u0041`.repeat((bytes - 64) / 6)}"`],
    ['a text of halves of pairs', `"${String.raw`\ud800`.repeat((bytes - 64) / 6)}"`],
    ['many members that are numbers', `{${filled((n) => `"${n}":0`)}}`],
    ['a text of ats and dots', `"${'a@a.'.repeat((bytes - 64) / 4)}"`],
    ['a text of blanks', `"${' '.repeat(bytes - 64)}x"`],
    ['a text of slashes', `"${'/:*'.repeat((bytes - 64) / 3)}"`],
    ['a text of marks', `"${'e\u0301'.repeat((bytes - 64) / 3)}"`],
    ['blanks', ' '.repeat(bytes - 64)],
  ]
}

/** Texts for parameters of path and query and for headers, at most 15 KB together. */
export function hostileTexts(characters: number): [name: string, text: string][] {
  const deep = Buffer.from('['.repeat((characters * 3) / 4)).toString('base64url')
  const numbers = Buffer.from(`[${'1,'.repeat((characters * 3) / 8)}1]`).toString('base64url')
  return [
    ['a letter again and again', 'a'.repeat(characters)],
    ['digits', '9'.repeat(characters)],
    ['hex digits', 'f'.repeat(characters)],
    ['dots', '.'.repeat(characters)],
    ['commas', 'a,'.repeat(characters / 2)],
    ['stars', 'a*,'.repeat(characters / 3)],
    ['colons', '::'.repeat(characters / 2)],
    ['times', '2026-11-22T'.repeat(characters / 11)],
    ['percents', '%25'.repeat(characters / 3)],
    ['letters that are encoded', '%41'.repeat(characters / 3)],
    ['bytes that are not text', '%ff%fe'.repeat(characters / 6)],
    ['halves of pairs', '%ed%a0%80'.repeat(characters / 9)],
    ['percents that encode nothing', '%zz'.repeat(characters / 3)],
    ['plusses', '+'.repeat(characters)],
    ['a cursor of brackets', deep],
    ['a cursor of numbers', numbers],
  ]
}
