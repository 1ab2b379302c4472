/**
 * Functions of the language that throw for some of their arguments, and whose calls the bundler drops all the same where no
 * code uses their value; no option of its tree shaking keeps them. It keeps what it has to read from an object
 * (docs/adr/0026-bundled-program.md). For `transform.define`.
 * @type {Record<string, string>}
 */
export const keptCalls = Object.fromEntries(
  ['decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent', 'String.fromCodePoint'].map(
    (name) => [name, `globalThis.${name}`],
  ),
)
