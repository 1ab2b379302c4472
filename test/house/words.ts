import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

/**
 * Words that name nothing in the terms of the field, and what to say instead. A word is a regular expression.
 */
export const words: readonly [word: string, instead: string][] = [
  ['tell|tells|telling|told|untold', 'report, send, log, acknowledge; pending'],
  ['askers?', 'client, caller'],
  ['ask (?:all|shard|first)|context ask', 'request'],
  ['nobody|somebody|anybody|everybody|whoever', 'no client, another node, the caller, any reader'],
  ['strangers?', 'unknown client, anonymous'],
  ['stragglers?', 'late append'],
  ['beats?|beaten', 'heartbeat'],
  ['silences?', 'missed heartbeat, timeout, stall'],
  ['hears?|heard', 'receives from'],
  ['rooms?', 'quota, capacity, free space'],
  ['laid', 'encoded'],
  ['booked', 'pending'],
  ['spoilt', 'corrupted'],
  ['meanwhile', 'in the meantime'],
  ['anew', 'again'],
  ['at once', 'immediately, at the same time'],
  ['for good', 'permanently'],
  ['in turn', 'one after another'],
  ['that once', 'the thing that happens once'],
  ['of (?:its|their) own', 'nothing, or another'],
  ['by the hand of', 'by'],
  ['(?:is|are|was|were|be|been|has|have|had) gone', 'is missing, was deleted, has ended'],
  ['(?<!there )(?:is|are) no(?! longer| more)', 'is not a'],
  ['(?:go|goes|going|went) on', 'continue'],
  ['standing(?! by)', 'status'],
  ['(?:stand|stands|standing|stood) by', 'is a standby'],
  ['(?:take|takes|taking|took) (?:its|their) turn', 'become active'],
  ['lets? go|letting go', 'release'],
  ['(?:give|gives|giving|gave|given) up', 'abort, step down'],
  ['(?:hand|hands|handing|handed) over|handover', 'transfer'],
  ['(?:sort|sorts|sorting|sorted) out', 'partition'],
  ['mail settles?', 'mail attempted'],
  ['lines on arrival', 'streamed lines'],
]

/** A text that keeps a word, in the paths that match. */
export interface Exception {
  text: RegExp
  paths: RegExp
  reason: string
}

export const exceptions: readonly Exception[] = [
  { text: /\btold(Heads|Strands|-heads|-strands)\b/, paths: /./, reason: 'tables of a store' },
  { text: /\blast-told\b/, paths: /^workers\/store\/tables\/meta\.ts/, reason: 'a stored key' },
  { text: /\buntold\b/, paths: /^workers\/(store|auth)\/|^docs\/adr\/0032/, reason: 'a stored key' },
  { text: /\bmail-room\b/, paths: /^workers\/|^test\/threads\/|^docs\/adr\/0032/, reason: 'a stored key' },
  { text: /\bbeat\b/, paths: /^src\/cluster\/database\//, reason: 'a column of PostgreSQL' },
  { text: /\bbeat (= beat|bigint|>)/, paths: /^test\//, reason: 'a column of PostgreSQL' },
  { text: /`beat`/, paths: /^docs\//, reason: 'a column of PostgreSQL' },
  {
    text: /\b\w*[sS]tanding\w*/,
    paths: /proposal|standings|^src\/front\/routes\/route\.ts|^workers\/mutations\//,
    reason: 'what a proposer may do now',
  },
  { text: /\bstands_by\b/, paths: /./, reason: 'a member of an answer' },
  { text: /\bSERVICE_SHARD_SILENCE_SECS\b/, paths: /./, reason: 'a setting' },
  { text: /\bshardSilenceSecs\b/, paths: /^src\/|^test\//, reason: 'the value of that setting' },
  { text: /\bStrandfastClusterNobodyServes\b/, paths: /./, reason: 'an alert' },
  {
    text: /\btell(s)? of\b|\btold (of|before)\b|\bis no strand-export\b/,
    paths: /^(src\/(proof|front)|examples|scripts\/vectors|test\/(client|e2e))\//,
    reason: 'reasons of verdicts, frozen in test/vectors',
  },
  {
    text: /\btold\b|\btells more\b|\bgoes on\b|\bis no object\b|\bno manifest\b/,
    paths: /^scripts\/vectors\/|^test\/unit\/cli\/witness\.test\.ts/,
    reason: 'names of vectors, frozen in test/vectors',
  },
  {
    text: /\brooms?\b|\bRooms?\b/,
    paths:
      /^packages\/|^test\/(e2e\/(client|openapi|packages)|routes\/query|support\/server\/client-)|^src\/front\/routes\/ingest\.ts/,
    reason: 'example data of real rooms',
  },
  { text: /'nobody'/, paths: /^bench\/peers\/|^test\/support\/postgres\//, reason: 'a user of Unix' },
  { text: /\b0032-strangers-and-devices\b/, paths: /./, reason: 'the address of a decision' },
  { text: /^.*$/, paths: /^test\/house\/words\./, reason: 'this rule' },
]

/** A part of a file that is read as one text: a comment, a string, a name or the prose of a document. */
interface Passage {
  start: number
  end: number
}

/** Comments, texts and names of a program. Consecutive comments of one line are one passage. */
function passagesOfCode(path: string, code: string): Passage[] {
  const { program, comments, errors } = parseSync(path, code)
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`)
  const passages: Passage[] = []
  for (const { start, end } of comments) {
    const last = passages.at(-1)
    if (last !== undefined && code.slice(last.end, start).trim() === '') last.end = end
    else passages.push({ start, end })
  }
  const add = ({ start, end }: Passage) => void passages.push({ start, end })
  const addName = ({ start, name }: { start: number; name: string }) =>
    add({ start, end: start + name.length })
  new Visitor({
    Identifier: addName,
    JSXIdentifier: addName,
    PrivateIdentifier: add,
    JSXText: add,
    TemplateElement: add,
    Literal: (literal) => {
      if (typeof literal.value === 'string' || 'regex' in literal) add(literal)
    },
  }).visit(program)
  return passages
}

/** A document without its blocks of code. */
function passagesOfDocument(text: string): Passage[] {
  const blocks = [...text.matchAll(/^ *(```+)[^\n]*\n.*?^ *\1$/gms)]
  const starts = [0, ...blocks.map(({ index, 0: block }) => index + block.length)]
  return starts.map((start, index) => ({ start, end: blocks[index]?.index ?? text.length }))
}

function passagesOf(path: string, text: string): Passage[] {
  if (/\.(tsx?|m?js)$/.test(path)) return passagesOfCode(path, text)
  return path.endsWith('.md') ? passagesOfDocument(text) : [{ start: 0, end: text.length }]
}

const forbidden = new RegExp(
  `(?<!\\p{L})(?:${words.map(([word]) => `(${word.replaceAll(' ', '\\s+')})`).join('|')})(?!\\p{L})`,
  'gu',
)

/** A text in words of small letters: `toldHeads` as `told heads`. Lines and ends of sentences remain. */
function asWords(text: string): string {
  return text
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, ' ')
    .replaceAll(/[^\p{L}\n.,:;]|(?<=\n *)(?:\*|\/\/)(?= )/gu, ' ')
    .toLowerCase()
}

/** `path:line: word → instead` of each forbidden word in a file and in its path. */
export function forbiddenWords(path: string, root = '.'): string[] {
  const text = readFileSync(join(root, path), 'utf8')
  const excepted = exceptions.filter(({ paths }) => paths.test(path))
  const wordsIn = (passage: string, lineBefore: number) => {
    const checked = excepted.reduce((rest, one) => rest.replaceAll(new RegExp(one.text, 'gm'), ''), passage)
    const plain = asWords(checked)
    return [...plain.matchAll(forbidden)].map(({ index, 0: word, ...groups }) => {
      const line = lineBefore + plain.slice(0, index).split('\n').length
      const [, instead] = words.find((_, number) => groups[number + 1] !== undefined) ?? []
      return `${path}:${line}: ${word.replaceAll(/\s+/g, ' ')} → ${instead}`
    })
  }
  // Most files contain none, and need not be parsed.
  if (wordsIn(text, 0).length === 0) return wordsIn(path, 0)
  const passages = passagesOf(path, text).sort((one, other) => one.start - other.start)
  const found = passages.flatMap(({ start, end }) =>
    wordsIn(text.slice(start, end), text.slice(0, start).split('\n').length - 1),
  )
  return [...wordsIn(path, 0), ...found]
}
