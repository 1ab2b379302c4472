const TERMINAL_MS = 200
const LOG_MS = 3_000

/**
 * Shows progress on standard error: one updated line on a terminal, otherwise a line at intervals.
 * @param {() => string} describe
 * @returns {(line?: string) => void} ends it, with a last line
 */
export function showProgress(describe) {
  const { isTTY } = process.stderr
  const show = () => process.stderr.write(isTTY ? `\r\u001b[K${describe()}` : `${describe()}\n`)
  const timer = setInterval(show, isTTY ? TERMINAL_MS : LOG_MS)
  return (line) => {
    clearInterval(timer)
    if (isTTY) process.stderr.write('\r\u001b[K')
    if (line !== undefined) process.stderr.write(`${line}\n`)
  }
}

/**
 * Formats an integer with grouped digits.
 * @param {number} value
 */
export function grouped(value) {
  return Math.round(value).toLocaleString('en')
}
