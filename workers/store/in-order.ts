/** Merges sorted lists. Equal items are yielded in the order of their lists. */
export function* inOrder<T>(
  lists: readonly Iterable<T>[],
  isBefore: (one: T, other: T) => boolean,
): Generator<T> {
  const cursors = lists.flatMap((list) => {
    const rest = list[Symbol.iterator]()
    const next = rest.next()
    return next.done === true ? [] : [{ rest, first: next.value }]
  })
  while (cursors.length > 0) {
    const least = cursors.reduce((one, other) => (isBefore(other.first, one.first) ? other : one))
    yield least.first
    const next = least.rest.next()
    if (next.done === true) cursors.splice(cursors.indexOf(least), 1)
    else least.first = next.value
  }
}
