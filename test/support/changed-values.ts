/** Values at the edges of what a key, a time or a seq can hold, and values of other types. */
export const edgeValues: readonly unknown[] = [
  0,
  -1,
  1.5,
  2 ** 48 - 1,
  2 ** 48,
  2 ** 53 - 1,
  9e15,
  'x',
  '',
  'x'.repeat(4_096),
  null,
  true,
  [],
  {},
  [1],
]

/** All versions of a JSON value in which one member, at any depth, is one of the edge values. */
export function* changedValues(value: unknown): Generator<unknown> {
  if (typeof value !== 'object' || value === null) {
    yield* edgeValues
    return
  }
  for (const [name, member] of Object.entries(value)) {
    const others = typeof member === 'object' ? [...changedValues(member), ...edgeValues] : edgeValues
    for (const other of others) {
      yield Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other }
    }
  }
}
