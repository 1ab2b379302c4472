/** Milliseconds between two updates of the progress, on a terminal and elsewhere. */
const TERMINAL_MS = 200
const ELSEWHERE_MS = 2_000

/**
 * Shows the progress of long work on standard error: one line that is updated on a terminal, several lines elsewhere.
 */
export function startProgress(): { show(describe: () => string): void; end(): void } {
  const { isTTY } = process.stderr
  let describe: (() => string) | undefined
  let last = ''
  const look = () => {
    const text = describe?.()
    if (text === undefined || text === last) return
    last = text
    process.stderr.write(isTTY ? `\r\u001B[K${text}` : `${text}\n`)
  }
  const timer = setInterval(look, isTTY ? TERMINAL_MS : ELSEWHERE_MS)
  return {
    show(next) {
      // The final state of the part before; a part that took no time shows nothing.
      if (last !== '') look()
      if (isTTY && last !== '') process.stderr.write('\n')
      last = ''
      describe = next
    },
    end() {
      clearInterval(timer)
      if (last !== '') look()
      if (isTTY && last !== '') process.stderr.write('\n')
    },
  }
}
