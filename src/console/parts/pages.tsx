/** Buttons to the pages before and behind; none where there is one page. */
export function Pages(props: {
  hasBefore: boolean
  next: string | undefined
  goBack: () => void
  goOn: (cursor: string) => void
}) {
  const { hasBefore, next, goBack, goOn } = props
  if (!hasBefore && next === undefined) return null
  return (
    <nav class="pages" aria-label="Pages">
      <button type="button" disabled={!hasBefore} onClick={goBack}>
        Back
      </button>
      <button type="button" disabled={next === undefined} onClick={() => next !== undefined && goOn(next)}>
        Next
      </button>
    </nav>
  )
}

/** The same for a list whose pages are found by cursors: those that led to this page, none for the first one. */
export function CursorPages(props: {
  cursors: readonly string[]
  set: (cursors: string[]) => void
  /** The cursor of the page behind; null or undefined where there is none. */
  next: string | null | undefined
}) {
  const { cursors, set, next } = props
  return (
    <Pages
      hasBefore={cursors.length > 0}
      next={next ?? undefined}
      goBack={() => set(cursors.slice(0, -1))}
      goOn={(to) => set([...cursors, to])}
    />
  )
}
