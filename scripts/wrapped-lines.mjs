/** Maximum length of a line of a document. */
const WIDTH = 110

/** Words that begin a list item at the beginning of a line. */
const bullet = /^(?:[-*+]|\d+[.)])$/

/** Wraps prose and list items of Markdown. Tables, headings, images and spans of code are not divided. */
export function wrappedLines(text) {
  return text.split('\n').map(wrapped).join('\n')
}

function wrapped(line) {
  if (line.length <= WIDTH || /^[|#!<]/.test(line)) return line
  const indent = line.startsWith('- ') ? '  ' : ''
  const lines = []
  for (const word of wordsOf(line)) {
    const longer = `${lines.at(-1)} ${word}`
    if (lines.length > 0 && longer.length <= WIDTH) lines[lines.length - 1] = longer
    else lines.push(lines.length === 0 ? word : `${indent}${word}`)
  }
  return lines.join('\n')
}

/** The words of a line. A span of code is a part of one word, and a bullet a part of the word before it. */
function wordsOf(line) {
  const words = []
  for (const word of line.match(/(?:`[^`]*`|[^ ])+/g) ?? []) {
    if (words.length > 0 && bullet.test(word)) words.push(`${words.pop()} ${word}`)
    else words.push(word)
  }
  return words
}
