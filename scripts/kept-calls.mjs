/**
 * Built-in functions that throw for some arguments. The bundler drops their calls if the value is unused, and
 * no option prevents that; it keeps calls of members of an object (docs/adr/0026-bundled-program.md). For
 * `transform.define`.
 * @type {Record<string, string>}
 */
export const keptCalls = Object.fromEntries(
  ['decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent', 'String.fromCodePoint'].map(
    (name) => [name, `globalThis.${name}`],
  ),
)
