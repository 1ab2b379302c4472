/**
 * Writes src/auth/common-passwords.ts from the password dictionary of @zxcvbn-ts/language-common (MIT):
 * `node scripts/make-password-list.mjs FOLDER`, where FOLDER is the unpacked package.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Shorter passwords are refused anyway. */
const CHARS_MIN = 8
/** Keeps the file within 400 lines. */
const WORDS_PER_LINE = 50

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error('Expected the folder of the unpacked package')
  process.exit(78)
}

const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
const license = readFileSync(join(folder, 'LICENSE.txt'), 'utf8').trim()
const words = JSON.parse(readFileSync(join(folder, 'src/passwords.json'), 'utf8'))
const accepted = [...new Set(words.map((word) => word.normalize('NFKC').toLowerCase()))].filter(
  (word) => [...word].length >= CHARS_MIN,
)
const unwritable = accepted.filter((word) => !/^[!-~]+$/.test(word) || /[`\\]|\$\{/.test(word))
if (unwritable.length > 0) throw new Error(`Cannot be written to the file: ${unwritable.join(' ')}`)

const lines = []
for (let at = 0; at < accepted.length; at += WORDS_PER_LINE) {
  lines.push(accepted.slice(at, at + WORDS_PER_LINE).join(' '))
}
const notice = license.split('\n').map((line) => ` * ${line.trim()}`.trimEnd())

writeFileSync(
  new URL('../src/auth/common-passwords.ts', import.meta.url),
  `/*
 * Made by scripts/make-password-list.mjs from ${name} ${version}, under this license:
 *
${notice.join('\n')}
 */

/** ${accepted.length.toLocaleString('en')} common passwords of at least ${CHARS_MIN} characters, the commonest first, separated by white space. */
export const commonPasswords = String.raw\`
${lines.join('\n')}
\`
`,
)
