/**
 * Renders the types that a module of src/wire derives from its schemas, so that its declarations do not need
 * the schema library. Other exports are skipped.
 * @param {string} declarations as the compiler writes them, for the comments
 * @param {Record<string, unknown>} schemas the exports of the module
 * @returns {string} declarations without imports
 */
export function plainTypes(declarations, schemas) {
  const commented = (text) => new RegExp(`((?:/\\*\\*(?:(?!\\*/)[^])*\\*/\n)?)export ${text}`, 'g')
  const comments = new Map()
  for (const [, comment, name] of declarations.matchAll(commented('declare const (\\w+): Type')))
    comments.set(name, comment)
  const derived = declarations.matchAll(commented('type (\\w+) = Static<typeof (\\w+)>;'))
  const types = [...derived].map(([, comment, name, from]) => {
    if (schemas[from] === undefined) throw new Error(`The schema ${from} is not exported`)
    return `${comment || comments.get(from)}export type ${name} = ${typeOf(schemas[from], '')};\n`
  })
  return types.join('') || 'export {};\n'
}

const atoms = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' }

/** The type of the values that a schema allows. */
function typeOf({ type, items, properties, patternProperties, required = [], ...schema }, indent) {
  if ('const' in schema) return JSON.stringify(schema.const)
  if ('enum' in schema) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if ('anyOf' in schema) return schema.anyOf.map((one) => typeOf(one, indent)).join(' | ')
  if (type in atoms) return atoms[type]
  if (type === 'array') return `Array<${typeOf(items, indent)}>`
  if (patternProperties !== undefined) return `Record<string, ${typeOf(patternProperties['^.*$'], indent)}>`
  if (properties !== undefined) {
    const members = Object.entries(properties).map(([name, member]) => {
      const mark = required.includes(name) ? '' : '?'
      return `${indent}    ${/^[\w$]+$/.test(name) ? name : JSON.stringify(name)}${mark}: ${typeOf(member, `${indent}    `)};\n`
    })
    return members.length === 0 ? '{}' : `{\n${members.join('')}${indent}}`
  }
  if (type === undefined) return 'unknown'
  throw new Error(`Unknown form of a schema: ${JSON.stringify({ type, ...schema })}`)
}
