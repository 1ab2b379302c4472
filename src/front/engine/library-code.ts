import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'

/*
 * Two faults of uWebSockets.js lose data, JavaScript cannot work around them, and no package of the registry has
 * a build without them. So this file changes single bytes of the library's code, in the memory of this process
 * (docs/adr/0037-two-http-engines.md).
 *
 * It trims blanks around the value of a header in two loops that compare bytes as numbers of type `char`. Where
 * that type is signed, as on x64, bytes above 0x7F are smaller than a blank, and both loops drop them: the keys
 * `René` and `Renè` are both `Ren`. Their jumps become unsigned.
 *
 * It reads from a paused connection again as long as each read fills its buffer of 512 KiB. Of a client on the
 * same machine it read more than a gigabyte, and served no other connection in the meantime. The size of the
 * buffer in that comparison becomes one that no read has.
 */

/** A place in the code: the instructions around one byte, in hex, and the byte that it has and should have. */
interface Change {
  before: string
  from: number
  to: number
  after: string
}

/** The changes of each known build, by processor. */
const builds: readonly { arch: string; changes: readonly Change[] }[] = [
  {
    // uws-pack 20.0.8: cmpb $0x21,(%rdx,%rbx); jge → jae. cmpb $0x20,-1(%rdx); jg → ja. cmp $0x80000,%ebp
    arch: 'x64',
    changes: [
      { before: '803c1a21', from: 0x7d, to: 0x73, after: '104883c1ff4883c3ff49895930' },
      { before: '807aff20', from: 0x7f, to: 0x77, after: '1249895138498949304883c201' },
      { before: 'ff504881fd', from: 0x00, to: 0x01, after: '0008000f85' },
    ],
  },
  {
    // uWebSockets.js 20.57.0: the same with other registers
    arch: 'x64',
    changes: [
      { before: '41807c030121', from: 0x7d, to: 0x73, after: '0c488942104883c0ff72ee' },
      { before: '41807bff20', from: 0x7f, to: 0x77, after: '114c895a184889421049ffc3' },
      { before: 'ff50484181fe', from: 0x00, to: 0x01, after: '0008000f85' },
    ],
  },
  {
    // Both: add x1, x1, #0x20; blr x8; cmp w20, #0x80, lsl #12 → #0x81. Under Linux, `char` is unsigned here.
    arch: 'arm64',
    changes: [{ before: '2181009100013fd69f', from: 0x02, to: 0x06, after: '4271' }],
  },
]

/**
 * Changes the code of the loaded uWebSockets.js; repeating it changes nothing. It works on Linux.
 * @returns false if the library cannot be changed, and so must not be used
 */
export function mendLibrary(): boolean {
  const { platform, arch } = process
  if (platform !== 'linux') return false
  const mapping = new RegExp(`^([0-9a-f]+)-([0-9a-f]+) r-xp .*/uws_linux_${arch}_\\d+\\.node$`, 'm')
  let memory: number | undefined
  try {
    const [, from = '', to = ''] = mapping.exec(readFileSync('/proc/self/maps', 'utf8')) ?? []
    if (from === '') return false
    const start = Number.parseInt(from, 16)
    const code = Buffer.alloc(Number.parseInt(to, 16) - start)
    memory = openSync('/proc/self/mem', 'r+')
    readSync(memory, code, 0, code.length, start)
    const changes = neededChanges(code, arch)
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
 * @returns undefined for an unknown build: one without exactly one place for each change
 */
export function neededChanges(code: Buffer, arch: string): { at: number; byte: number }[] | undefined {
  for (const build of builds) {
    if (build.arch !== arch) continue
    const places = build.changes.map((change) => ({ change, found: placesOf(code, change, change.from) }))
    const isKnown = places.every(
      ({ change, found }) => found.length + placesOf(code, change, change.to).length === 1,
    )
    if (isKnown) return places.flatMap(({ change, found }) => found.map((at) => ({ at, byte: change.to })))
  }
  return undefined
}

/** The offsets of the byte between its instructions, up to two. */
function placesOf(code: Buffer, { before, after }: Change, byte: number): number[] {
  const instructions = Buffer.from(`${before}${byte.toString(16).padStart(2, '0')}${after}`, 'hex')
  const first = code.indexOf(instructions)
  const second = first < 0 ? -1 : code.indexOf(instructions, first + 1)
  return [first, second].filter((at) => at >= 0).map((at) => at + before.length / 2)
}
