// The package is CommonJS but describes itself as an ES module, which nodenext reads as { default }.
declare module 'canonicalize' {
  function canonicalize(value: unknown): string | undefined
  export = canonicalize
}
