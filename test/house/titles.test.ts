import { readFileSync } from 'node:fs'
import { parseSync, Visitor, type ESTree } from 'rolldown/utils'
import { describe, expect, it } from 'vitest'
import { filesBelow } from './tree.js'

/** A title that begins with one of these words is not a sentence: each needs a noun or verb before it. */
const neverFirst = new Set(
  (
    'of that with without by when where while under as to still whose what which whichever in on at for from through ' +
    'after before and but or because if unless until not behind about again back forward answered would'
  ).split(' '),
)

const placeholders = /%[a-z#]|\$[\w.]+/gi

function isSentence(title: string): boolean {
  const [first = ''] = /^\p{L}+/u.exec(title) ?? []
  return /\p{L}/u.test(title.replace(placeholders, '')) && !neverFirst.has(first.toLowerCase())
}

function textOf(node: ESTree.Node | null | undefined): string | undefined {
  if (node?.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.raw).join('%s')
  return node?.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined
}

/** The title of a call; a title that begins with %s is expanded for each row of a literal table. */
function titlesOf({ callee, arguments: [argument] }: ESTree.CallExpression): string[] {
  const title = textOf(argument)
  if (title === undefined) return []
  const table = callee.type === 'CallExpression' ? callee.arguments[0] : undefined
  if (table?.type !== 'ArrayExpression' || !title.startsWith('%s')) return [title]
  const labels = table.elements.map((row) => textOf(row?.type === 'ArrayExpression' ? row.elements[0] : row))
  return [title, ...labels.map((label = '%s') => title.replace('%s', () => label))]
}

/** The titles of a file's tests that are not sentences, each after the titles of its groups. */
function badTitles(path: string, code = readFileSync(path, 'utf8')): string[] {
  const groups: { call: ESTree.CallExpression; title: string }[] = []
  const bad: string[] = []
  const { program, errors } = parseSync(path, code)
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`)
  new Visitor({
    CallExpression(call) {
      const [kind] = /^(it|test|describe)\b/.exec(code.slice(call.start, call.end)) ?? []
      const titles = titlesOf(call)
      const [title] = titles
      if (kind === undefined || title === undefined) return
      if (kind === 'describe') groups.push({ call, title })
      else if (!titles.every(isSentence))
        bad.push(`${path}: ${[...groups.map((group) => group.title), title].join(' > ')}`)
    },
    'CallExpression:exit'(call) {
      if (groups.at(-1)?.call === call) groups.pop()
    },
  }).visit(program)
  return bad
}

it('finds only sentences as titles of tests', () => {
  const files = filesBelow('test').filter((path) => path.endsWith('.test.ts'))
  expect(files.length).toBeGreaterThan(300)
  expect(files.flatMap((path) => badTitles(path))).toEqual([])
})

describe('the title of a planted test', () => {
  const found = (test: string) => badTitles('a.test.ts', `describe('a clock', () => {\n  ${test}\n})\n`)

  it('is found when it begins with any word of the list', () => {
    for (const word of neverFirst)
      expect(found(`it('${word} one runs', () => {})`)).toEqual([`a.test.ts: a clock > ${word} one runs`])
  })

  it.each(['%s', '%j: %i', '$name', '${one}'])('is found when it is only %j', (title) => {
    expect(found(`it.each(rows)(\`${title}\`, () => {})`)).toHaveLength(1)
  })

  it('is found in every form of a test, and in the rows of a table', () => {
    for (const form of 'it test it.skipIf(a) it.concurrent it.skipIf(a).each(rows) it.each`a`'.split(' '))
      expect(found(`${form}('of one', () => {})`)).toEqual(['a.test.ts: a clock > of one'])
    expect(found("it.each([['one', 1], ['of two', 2]])('%s runs', () => {})")).toHaveLength(1)
  })

  it.each(['office runs', '%s runs', '$name is %i'])('is not found when it is %j', (title) => {
    expect(found(`it.each([['one'], two])('${title}', () => {})`)).toEqual([])
  })
})
