/** Schemas as tables: a row a member, nested members indented below it. */
export const schemaScript = String.raw`
const NESTING_MAX = 6

const isNull = (schema) => schema.type === 'null'
const variantsOf = (schema) => schema.oneOf || schema.anyOf

/* Parts of allOf put together; what a later part says of a member beats what an earlier one said. */
function merged(schema) {
  if (!schema.allOf) return schema
  return schema.allOf
    .map((part) => merged(follow(part).value))
    .reduce((all, part) => ({ ...all, ...part, properties: joined(all.properties, part.properties) }), {})
}

function joined(earlier, later) {
  const all = { ...earlier }
  for (const [name, schema] of Object.entries(later || {})) all[name] = { ...all[name], ...schema }
  return all
}

function typeText(node) {
  const { name, value } = follow(node)
  const variants = variantsOf(value)
  if (variants) return name && !variants.some(isNull) && variants.length > 2 ? name : [...new Set(variants.map(typeText))].join(' or ')
  if ('const' in value) return JSON.stringify(value.const)
  if (value.enum) return typeof value.enum[0]
  if (value.type === 'array') return 'array of ' + typeText(value.items || {})
  if (value.type === 'object' && name) return name
  return value.type || 'any'
}

/* What a value must keep to, beyond its type. */
function notesOf(schema) {
  const notes = []
  const span = (low, high, unit) => {
    if (low === undefined && high === undefined) return
    if (high === undefined) notes.push(['at least ' + low + unit])
    else notes.push([low === undefined ? 'at most ' + high + unit : low + ' to ' + high + unit])
  }
  if (schema.enum) notes.push(['one of ', schema.enum.map((one, place) => [place ? ', ' : '', element('code', null, JSON.stringify(one))])])
  span(schema.minimum, schema.maximum, '')
  span(schema.minLength, schema.maxLength, ' characters')
  span(schema.minItems, schema.maxItems, ' items')
  if (schema.default !== undefined) notes.push(['default ', element('code', null, JSON.stringify(schema.default))])
  const pattern = schema.pattern || (variantsOf(schema) || []).map((one) => follow(one).value.pattern).find(Boolean)
  if (pattern) notes.push(['matches ', element('code', null, pattern)])
  return notes.map((note) => element('span', null, note))
}

/* A request marks what it needs; an answer, of which most is always there, marks what may be absent. */
function markOf(needed, answering) {
  if (answering) return !needed && element('span', { class: 'optional' }, 'may be absent')
  return needed && element('span', { class: 'needed' }, 'required')
}

function row({ name, schema, needed, depth, described, answering }) {
  const { value } = follow(schema)
  const notes = notesOf(value)
  const words = described || schema.description || value.description
  const label = element('div', null, element('code', null, name), markOf(needed, answering))
  const made = element(
    'tr',
    null,
    element('td', { class: 'member' }, label),
    element('td', { class: 'kind' }, typeText(schema)),
    element('td', { class: 'words' }, words && element('div', null, prose(words)), notes.length > 0 && element('div', { class: 'notes' }, notes)),
  )
  made.style.setProperty('--depth', String(depth))
  return made
}

function eitherRow(text, depth) {
  const made = element('tr', { class: 'either' }, element('td', { colspan: '3' }, element('div', null, text)))
  made.style.setProperty('--depth', String(depth))
  return made
}

/* Whether a schema has members of its own to show. */
function hasMembers(node, depth) {
  const value = merged(follow(node).value)
  if (depth > NESTING_MAX) return false
  if (value.type === 'array') return hasMembers(value.items || {}, depth + 1)
  const patterns = Object.values(value.patternProperties || {})
  const inside = [...(variantsOf(value) || []), ...patterns]
  return Object.keys(value.properties || {}).length > 0 || inside.some((one) => hasMembers(one, depth + 1))
}

function memberRows(node, depth, answering) {
  const value = merged(follow(node).value)
  if (depth > NESTING_MAX) return []
  if (value.type === 'array') return memberRows(value.items || {}, depth, answering)
  const variants = (variantsOf(value) || []).filter((one) => hasMembers(one, depth))
  if (variants.length === 1) return memberRows(variants[0], depth, answering)
  if (variants.length > 1) {
    return variants.flatMap((one, place) => [eitherRow((place ? 'or ' : 'either ') + variantName(one), depth), ...memberRows(one, depth, answering)])
  }
  const named = Object.entries(value.properties || {}).map(([name, schema]) => ({ name, schema, needed: (value.required || []).includes(name) }))
  const others = Object.values(value.patternProperties || {}).map((schema) => ({ name: '(any name)', schema, needed: true }))
  return [...named, ...others.filter((one) => hasMembers(one.schema, depth))].flatMap((member) => [
    row({ ...member, needed: member.name === '(any name)' ? answering : member.needed, depth, answering }),
    ...(hasMembers(member.schema, depth) ? memberRows(member.schema, depth + 1, answering) : []),
  ])
}

function variantName(node) {
  const { name, value } = follow(node)
  return name || (value.properties ? '{' + Object.keys(value.properties).join(', ') + '}' : typeText(node))
}

function tableOf(heads, rows) {
  const head = element('tr', null, heads.map((text) => element('th', { scope: 'col' }, text)))
  return element('table', null, element('thead', null, head), element('tbody', null, rows))
}

/* A schema as a table; one without members as a line. */
function schemaView(schema, answering) {
  const rows = memberRows(schema, 0, answering)
  if (rows.length > 0) return tableOf(['Member', 'Type', 'Meaning'], rows)
  const { value } = follow(schema)
  return element('p', { class: 'muted' }, typeText(schema), value.description && [' – ', prose(value.description)])
}
`
