import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'

/*
 * uWebSockets.js trims blanks around the value of a header in two loops that compare bytes as numbers of type
 * `char`. Where that type is signed, bytes above 0x7F are smaller than a blank, and both loops drop them: the
 * keys `René` and `Renè` are both `Ren`. JavaScript sees only what is left, and no package of the registry
 * has a correct build. So this file replaces the two signed comparisons by unsigned ones, in the memory of
 * this process (docs/adr/0037-two-http-engines.md).
 */

/** A loop that trims: its instructions in hex, of which the conditional jump is signed or unsigned. */
interface TrimLoop {
  before: string
  signed: number
  unsigned: number
  after: string
}

/** The loops at the end and at the beginning of a value, in each known build for x64. */
const builds: readonly (readonly TrimLoop[])[] = [
  [
    // uws-pack 20.0.8: cmpb $0x21,(%rdx,%rbx); jge or jae
    { before: '803c1a21', signed: 0x7d, unsigned: 0x73, after: '104883c1ff4883c3ff49895930' },
    // cmpb $0x20,-1(%rdx); jg or ja
    { before: '807aff20', signed: 0x7f, unsigned: 0x77, after: '1249895138498949304883c201' },
  ],
  [
    // uWebSockets.js 20.57.0: cmpb $0x21,1(%r11,%rax); jge or jae
    { before: '41807c030121', signed: 0x7d, unsigned: 0x73, after: '0c488942104883c0ff72ee' },
    // cmpb $0x20,-1(%r11); jg or ja
    { before: '41807bff20', signed: 0x7f, unsigned: 0x77, after: '114c895a184889421049ffc3' },
  ],
]

/**
 * Makes the loaded uWebSockets.js keep all bytes of a header's value; repeating it changes nothing. It works
 * on Linux: on ARM, `char` is unsigned there; on x64, two bytes of the library's code are replaced.
 * @returns false if the library drops bytes and cannot be changed, and so must not be used
 */
export function keepHeaderBytes(): boolean {
  if (process.platform !== 'linux') return false
  if (process.arch !== 'x64') return process.arch === 'arm64' || process.arch === 'arm'
  const mapping = /^([0-9a-f]+)-([0-9a-f]+) r-xp .*\/uws_linux_x64_\d+\.node$/m
  let memory: number | undefined
  try {
    const [, from = '', to = ''] = mapping.exec(readFileSync('/proc/self/maps', 'utf8')) ?? []
    if (from === '') return false
    const start = Number.parseInt(from, 16)
    const code = Buffer.alloc(Number.parseInt(to, 16) - start)
    memory = openSync('/proc/self/mem', 'r+')
    readSync(memory, code, 0, code.length, start)
    const changes = neededChanges(code)
    for (const { at, byte } of changes ?? []) writeSync(memory, Buffer.of(byte), 0, 1, start + at)
    return changes !== undefined
  } catch {
    // This system does not let a process change its code, so the caller uses the other library.
    return false
  } finally {
    if (memory !== undefined) closeSync(memory)
  }
}

/**
 * The bytes of the library's code that have to be replaced.
 * @returns undefined for an unknown build: one without exactly one loop of each kind
 */
export function neededChanges(code: Buffer): { at: number; byte: number }[] | undefined {
  for (const loops of builds) {
    const places = loops.map((loop) => ({ loop, signed: placesOf(code, loop, 'signed') }))
    const isKnown = places.every(
      ({ loop, signed }) => signed.length + placesOf(code, loop, 'unsigned').length === 1,
    )
    if (isKnown)
      return places.flatMap(({ loop, signed }) => signed.map((at) => ({ at, byte: loop.unsigned })))
  }
  return undefined
}

/** The offsets of the loop's jump in the code, up to two. */
function placesOf(code: Buffer, loop: TrimLoop, jump: 'signed' | 'unsigned'): number[] {
  const instructions = Buffer.from(`${loop.before}${loop[jump].toString(16)}${loop.after}`, 'hex')
  const first = code.indexOf(instructions)
  const second = first < 0 ? -1 : code.indexOf(instructions, first + 1)
  return [first, second].filter((at) => at >= 0).map((at) => at + loop.before.length / 2)
}
