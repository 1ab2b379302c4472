/** Checks an invariant. A failed assertion is a bug. @throws Error when `condition` is false */
export function assert(condition: boolean, mustHold: string): asserts condition {
  if (!condition) throw new Error(`Assertion failed: ${mustHold}`)
}

/** Ends a switch over a union: the compiler refuses a kind that no case handles. */
export function unreachable(value: never): never {
  throw new Error(`Unreachable: ${JSON.stringify(value)}`)
}
