/*
 * Makes parsed JSON `unknown`; the platform's types say `any`. The later of two declarations of a method
 * wins.
 */

interface JSON {
  parse(text: string, reviver?: (this: unknown, key: string, value: unknown) => unknown): unknown
}

interface Body {
  json(): Promise<unknown>
}
