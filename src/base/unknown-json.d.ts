/*
 * JSON is `unknown` until something has looked at it: by the platform's own types it is `any`, which any type takes without
 * a check. Of two declarations of a method the later one is asked first.
 */

interface JSON {
  parse(text: string, reviver?: (this: unknown, key: string, value: unknown) => unknown): unknown
}

interface Body {
  json(): Promise<unknown>
}
