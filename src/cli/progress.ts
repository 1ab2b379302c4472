/** Milliseconds between two looks at how far the work is, on a terminal and elsewhere. */
const TERMINAL_MS = 200
const ELSEWHERE_MS = 2_000

/** Shows on standard error how far long work has come: one line that is renewed on a terminal, lines elsewhere. */
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
      // How far the part before came in the end; what took no time says nothing.
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
