/**
 * Writes src/auth/common-passwords.json from the password dictionary of @zxcvbn-ts/language-common (MIT):
 * `node scripts/make-password-list.mjs FOLDER`, where FOLDER is the unpacked package.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Shorter passwords are refused anyway. */
const CHARS_MIN = 8
/** Changes of the list are readable by line. */
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
const passwords = []
for (let at = 0; at < accepted.length; at += WORDS_PER_LINE)
  passwords.push(accepted.slice(at, at + WORDS_PER_LINE).join(' '))
writeFileSync(
  new URL('../src/auth/common-passwords.json', import.meta.url),
  `${JSON.stringify({ source: `${name} ${version}`, license, passwords }, null, 2)}\n`,
)
