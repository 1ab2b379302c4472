/**
 * A slow strict JSON reader, written only from RFC 8259 and docs/FORMAT.md (Body), with which the fast one is
 * compared.
 * @returns undefined if the text must be refused
 */
export function readStrictly(text: string, depthMax: number): { value: unknown } | undefined {
  try {
    return { value: new Reader(text, depthMax).document() }
  } catch (error) {
    if (error instanceof Refused) return undefined
    throw error
  }
}

class Refused extends Error {}

class Reader {
  readonly #text: string
  readonly #depthMax: number
  #at = 0

  constructor(text: string, depthMax: number) {
    this.#text = text
    this.#depthMax = depthMax
  }

  document(): unknown {
    const value = this.#value(0)
    this.#take(/[ \t\n\r]*/)
    if (this.#at < this.#text.length) throw new Refused()
    return value
  }

  #take(pattern: RegExp): string {
    const sticky = new RegExp(pattern, 'y')
    sticky.lastIndex = this.#at
    const found = sticky.exec(this.#text)?.[0]
    if (found === undefined) throw new Refused()
    this.#at += found.length
    return found
  }

  #value(depth: number): unknown {
    this.#take(/[ \t\n\r]*/)
    const start = this.#text[this.#at]
    if (start === '{' || start === '[') {
      if (depth === this.#depthMax) throw new Refused()
      return start === '{' ? this.#object(depth + 1) : this.#array(depth + 1)
    }
    if (start === '"') return this.#string()
    if (start === 't' || start === 'f') return this.#take(/true|false/) === 'true'
    if (start === 'n') return this.#take(/null/) === 'null' ? null : undefined
    return this.#number()
  }

  #object(depth: number): Record<string, unknown> {
    const members = new Map<string, unknown>()
    this.#take(/\{[ \t\n\r]*/)
    if (this.#text[this.#at] === '}') {
      this.#take(/\}/)
      return {}
    }
    for (;;) {
      this.#take(/[ \t\n\r]*/)
      const key = this.#string()
      if (members.has(key) || key === '__proto__' || key.includes('\u0000')) throw new Refused()
      this.#take(/[ \t\n\r]*:/)
      members.set(key, this.#value(depth))
      if (this.#take(/[ \t\n\r]*[,}]/).endsWith('}')) return Object.fromEntries(members)
    }
  }

  #array(depth: number): unknown[] {
    const items: unknown[] = []
    this.#take(/\[[ \t\n\r]*/)
    if (this.#text[this.#at] === ']') {
      this.#take(/\]/)
      return items
    }
    for (;;) {
      items.push(this.#value(depth))
      if (this.#take(/[ \t\n\r]*[,\]]/).endsWith(']')) return items
    }
  }

  #string(): string {
    const raw = this.#take(/"(?:[ !\u0023-\u005b\u005d-\uffff]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/)
    let decoded = ''
    for (const [part] of raw.slice(1, -1).matchAll(/\\u[0-9a-fA-F]{4}|\\.|[^\\]/gsu)) {
      if (part.startsWith('\\u')) decoded += String.fromCharCode(Number.parseInt(part.slice(2), 16))
      else decoded += part.startsWith('\\') ? (escapes.get(part) ?? '') : part
    }
    // Iterates over code points, so that only lone surrogates match.
    for (const character of decoded) if (/^[\ud800-\udfff]$/.test(character)) throw new Refused()
    return decoded
  }

  #number(): number {
    const literal = this.#take(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/)
    if (/^-?[0-9]+$/.test(literal)) {
      const exact = BigInt(literal)
      if (exact > 9007199254740991n || exact < -9007199254740991n) throw new Refused()
    }
    const double = Number(literal)
    if (Math.abs(double) === Number.POSITIVE_INFINITY) throw new Refused()
    return double
  }
}

const escapes = new Map([
  ['\\"', '"'],
  ['\\\\', '\\'],
  ['\\/', '/'],
  ['\\b', '\b'],
  ['\\f', '\f'],
  ['\\n', '\n'],
  ['\\r', '\r'],
  ['\\t', '\t'],
])
