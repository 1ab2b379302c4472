/*
 * Makes parsed JSON `unknown` until it is checked: by the platform's own types it is `any`, which can be assigned to
 * any type without a check. Of two declarations of a method, the later one takes precedence.
 */

interface JSON {
  parse(text: string, reviver?: (this: unknown, key: string, value: unknown) => unknown): unknown
}

interface Body {
  json(): Promise<unknown>
}
