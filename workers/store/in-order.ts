/** Merges lists that are in order; of equal ones, the first list's comes first. */
export function* inOrder<T>(
  lists: readonly Iterable<T>[],
  isBefore: (one: T, other: T) => boolean,
): Generator<T> {
  const open = lists.flatMap((list) => {
    const rest = list[Symbol.iterator]()
    const next = rest.next()
    return next.done === true ? [] : [{ rest, first: next.value }]
  })
  while (open.length > 0) {
    const least = open.reduce((one, other) => (isBefore(other.first, one.first) ? other : one))
    yield least.first
    const next = least.rest.next()
    if (next.done === true) open.splice(open.indexOf(least), 1)
    else least.first = next.value
  }
}
