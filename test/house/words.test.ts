import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { codeBelow, textFiles } from './tree.js'
import { exceptions, forbiddenWords, words } from './words.js'

/** Vectors are frozen, and data is not prose. */
const files = textFiles().filter((path) => !/^test\/vectors\/|\.(jsonl?|txt)$|(^|\/)LICENSE$/.test(path))

describe('the words of comments, names, texts and documents', () => {
  it('are read in every kind of file', () => {
    expect(files).toEqual(
      expect.arrayContaining(['README.md', 'src/main.ts', 'src/console/main.tsx', 'src/console/base.css']),
    )
    expect(files).toEqual(expect.arrayContaining(['scripts/ok.mjs', 'deploy/prometheus/alerts.yml']))
  })

  it('are those of the field', () => {
    expect(files.flatMap((path) => forbiddenWords(path))).toEqual([])
  })

  it.each(exceptions)('need the exception $text', ({ text, paths }) => {
    const pattern = new RegExp(text, 'm')
    const matching = files.filter((path) => paths.test(path))
    expect(matching.some((path) => pattern.test(`${path}\n${readFileSync(path, 'utf8')}`))).toBe(true)
  })
})

describe('the labels of the console', () => {
  /** Labels that it had, and buttons whose object the reader has to guess. */
  const struck = /(?<=['">]\s*)(Made|Made by|May|Back|Namespace|Figures?|[A-Z][a-z]+ it)(?=\s*['"<])/gu
  const struckIn = (text: string) => [...text.matchAll(struck)].map(([label]) => label)

  it('are those of the field', () => {
    const ofConsole = codeBelow('src/console').filter((path) => !path.startsWith('src/console/api/'))
    expect(ofConsole.length).toBeGreaterThan(100)
    expect(ofConsole.flatMap((path) => struckIn(readFileSync(path, 'utf8')))).toEqual([])
  })

  it('are found if they are struck', () => {
    const planted = "button: 'Delete it', head: ['Made by', (one) => one] <b>\n  May\n</b> <i>Made of</i>"
    expect(struckIn(planted)).toEqual(['Delete it', 'Made by', 'May'])
  })
})

describe('a planted word', () => {
  let root: string

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'strandfast-words-'))
  })

  afterAll(() => rmSync(root, { recursive: true, force: true }))

  function found(path: string, text: string): string[] {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
    return forbiddenWords(path, root)
  }

  const reply = 'report, send, log, acknowledge; pending'

  it.each([
    ['a.ts', '\n/** Is told once. */\n', 'a comment'],
    ['a.ts', '\n// Is\n// told once.\n', 'a second line'],
    ['a.ts', '\nconst toldOnce = 1\n', 'a name'],
    ['a.ts', "\nlog('It told.')\n", 'a text'],
    ['a.ts', '\nlog(`${it} told ${one}`)\n', 'a template'],
    ['a.ts', '\nexpect(it).toMatch(/told/)\n', 'a pattern'],
    ['a.test.ts', "\nit('is told', () => {})\n", 'a title'],
    ['a.tsx', '\nexport const A = () => <p title="a">It told.</p>\n', 'an element'],
    ['a.tsx', '\nexport const A = () => <p title="told">a</p>\n', 'an attribute'],
    ['a.tsx', '\nexport const A = () => <Told>a</Told>\n', 'the name of an element'],
    ['a.tsx', '\nexport const A = () => <p>{/* It told. */}</p>\n', 'a comment of an element'],
    ['a.mjs', '\nclass A { #told = 1 }\n', 'a private name'],
    ['a.css', '\n.told {}\n', 'a style'],
    ['a.yaml', '\na: 1 # It told.\n', 'a comment of YAML'],
    ['a.md', '\nIt **told** others.\n', 'a document'],
    ['a.md', '\n```sh\ntold\n```\n\n`told`\n', 'code of a document'],
  ])('is found in %s: %j', (path, text) => {
    const line = text.split('\n').findLastIndex((one) => /told/i.test(one)) + 1
    expect([...new Set(found(path, text))]).toEqual([`${path}:${line}: told → ${reply}`])
  })

  /** An example of each word, in the order of the list. */
  const examples =
    'tells; an asker; askAll; nobody; a stranger; a straggler; last-beat; the silence; it hears; a room; laid; booked; spoilt; ' +
    'meanwhile; anew; at once; for good; in\n * turn; logs that once; of its own; by the hand of; isGone; is no lease; ' +
    'mayGoOn; standing; STANDS_BY; takes its turn; lets go; giveUp; handedOver; sorts out; mailSettle; linesOnArrival'

  it('is found for each word of the list', () => {
    const texts = examples.split('; ')
    expect(
      texts.map((text) => found('a.ts', `/*\n * ${text}\n */\n`).map((line) => line.split(' → ')[1])),
    ).toEqual(words.map(([, instead]) => [instead]))
  })

  it('is found in the name of a file', () => {
    expect(found('src/hand-over.ts', 'export const one = 1\n')).toEqual([
      'src/hand-over.ts:1: hand over → transfer',
    ])
  })

  it.each([
    [
      'a.ts',
      '/** There is no lease, and a heartbeat is no longer sent. It goes. On its way, a teller beams. */\n',
    ],
    ['a.ts', 'const heartbeats = standby(mushroom, /\\d/)\n'],
    ['a.md', 'The standby foretold it.\n\n```sh\ntold\n```\n'],
    ['workers/store/a.ts', 'const { toldHeads } = row.untold\n'],
  ])('is not found in %s: %j', (path, text) => {
    expect(found(path, text)).toEqual([])
  })
})
