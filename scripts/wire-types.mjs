const atoms = {
  String: 'string',
  Integer: 'number',
  Number: 'number',
  Boolean: 'boolean',
  Null: 'null',
  Unknown: 'unknown',
}

/**
 * Renders the types that a module of src/wire derives from its schemas, so that its declarations do not need
 * the schema library. Other exports are skipped.
 * @param {string} declarations as the compiler writes them
 * @returns {string} declarations without imports
 */
export function plainTypes(declarations) {
  const schemas = new Map()
  const documented = String.raw`((?:\/\*\*(?:(?!\*\/)[^])*\*\/\n)?)`
  const constant = new RegExp(
    String.raw`${documented}(?:export )?declare const (\w+): (Type\.[^]*?);\n(?=[^\s}]|$)`,
    'g',
  )
  for (const [, comment, name, schema] of declarations.matchAll(constant))
    schemas.set(name, { comment, schema })
  const derived = new RegExp(String.raw`${documented}export type (\w+) = Static<typeof (\w+)>;`, 'g')
  const types = [...declarations.matchAll(derived)].map(([, comment, name, from]) => {
    const found = schemas.get(from)
    if (found === undefined) throw new Error(`No schema ${from} for the type ${name}`)
    return `${comment || found.comment}export type ${name} = ${new Reader(found.schema).whole()};\n`
  })
  return types.join('') || 'export {};\n'
}

/** Parses the type of a schema, such as `Type.TArray<Type.TString>`, and renders the type of its values. */
class Reader {
  #text
  #at = 0

  constructor(text) {
    this.#text = text
  }

  whole() {
    const type = this.#type()
    if (this.#at < this.#text.length) this.#fail()
    return type
  }

  #type() {
    const [kind] = this.#take(/Type\.T(\w+)/y)
    if (kind in atoms) return atoms[kind]
    this.#take(/</y)
    const type = this.#contents(kind)
    this.#take(/>/y)
    return type
  }

  #contents(kind) {
    if (kind === 'Object') return this.#members()
    if (kind === 'Array') return `Array<${this.#type()}>`
    if (kind === 'Union') return this.#list(() => this.#type()).join(' | ')
    if (kind === 'Enum') return this.#list(() => this.#literal()).join(' | ')
    if (kind === 'Literal') return this.#literal()
    if (kind !== 'Record') this.#fail()
    this.#take(/"\^\.\*\$", /y)
    return `Record<string, ${this.#type()}>`
  }

  #members() {
    let written = this.#take(/(\{)/y)[0]
    while (this.#text[this.#at] !== '}') {
      const [space, name] = this.#take(/(\s*)([\w$]+|"[^"]*"): /y)
      const [optional] = this.#take(/(Type\.TOptional<)?/y)
      written += `${space}${name}${optional === undefined ? '' : '?'}: ${this.#type()};`
      if (optional !== undefined) this.#take(/>/y)
      written += this.#take(/;(\n *(?=\}))?/y)[0] ?? ''
    }
    this.#take(/\}/y)
    return `${written}}`
  }

  #list(item) {
    this.#take(/\[/y)
    const items = [item()]
    while (this.#text[this.#at] === ',') {
      this.#take(/, /y)
      items.push(item())
    }
    this.#take(/\]/y)
    return items
  }

  #literal() {
    return this.#take(/("[^"]*"|'[^']*'|-?\d+|true|false)/y)[0]
  }

  /** Consumes a match of the pattern. @returns its groups */
  #take(pattern) {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match === null) this.#fail()
    this.#at = pattern.lastIndex
    return match.slice(1)
  }

  #fail() {
    throw new Error(`Unknown form of a schema type: ${this.#text.slice(this.#at, this.#at + 80)}`)
  }
}
