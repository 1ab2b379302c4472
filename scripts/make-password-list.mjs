/**
 * Writes src/auth/common-passwords.ts from the password dictionary of @zxcvbn-ts/language-common (MIT), unpacked beside
 * this repository: `node scripts/make-password-list.mjs FOLDER`, where FOLDER is that of the package.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Shorter ones are refused by their length. */
const CHARS_MIN = 8
/** So that the file stays within 400 lines. */
const WORDS_PER_LINE = 50

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error('Expected the folder of the unpacked package')
  process.exit(78)
}

const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
const license = readFileSync(join(folder, 'LICENSE.txt'), 'utf8').trim()
const words = JSON.parse(readFileSync(join(folder, 'src/passwords.json'), 'utf8'))
const kept = [...new Set(words.map((word) => word.normalize('NFKC').toLowerCase()))].filter(
  (word) => [...word].length >= CHARS_MIN,
)
const unwritable = kept.filter((word) => !/^[!-~]+$/.test(word) || /[`\\]|\$\{/.test(word))
if (unwritable.length > 0) throw new Error(`Cannot stand in the file as they are: ${unwritable.join(' ')}`)

const lines = []
for (let at = 0; at < kept.length; at += WORDS_PER_LINE) {
  lines.push(kept.slice(at, at + WORDS_PER_LINE).join(' '))
}
const notice = license.split('\n').map((line) => ` * ${line.trim()}`.trimEnd())

writeFileSync(
  new URL('../src/auth/common-passwords.ts', import.meta.url),
  `/*
 * Made by scripts/make-password-list.mjs from ${name} ${version}, under this license:
 *
${notice.join('\n')}
 */

/** ${kept.length.toLocaleString('en')} common passwords of at least ${CHARS_MIN} characters, the commonest first, separated by white space. */
export const commonPasswords = String.raw\`
${lines.join('\n')}
\`
`,
)
