import { Button } from './texts.js'
/** Buttons to the previous and the next page; nothing if there is one page. */
export function Pages(props: {
  hasPrevious: boolean
  next: string | undefined
  goBack: () => void
  goNext: (cursor: string) => void
}) {
  const { hasPrevious, next, goBack, goNext } = props
  if (!hasPrevious && next === undefined) return null
  return (
    <nav class="pages" aria-label="Pages">
      <Button text="Previous" disabled={!hasPrevious} onClick={goBack} />
      <Button text="Next" disabled={next === undefined} onClick={() => next !== undefined && goNext(next)} />
    </nav>
  )
}

/** Page buttons for a list with cursors. */
export function CursorPages(props: {
  /** The cursors that led to this page; empty on the first page. */
  cursors: readonly string[]
  set: (cursors: readonly string[]) => void
  /** The cursor of the next page; null or undefined on the last one. */
  next: string | null | undefined
}) {
  const { cursors, set, next } = props
  return (
    <Pages
      hasPrevious={cursors.length > 0}
      next={next ?? undefined}
      goBack={() => set(cursors.slice(0, -1))}
      goNext={(to) => set([...cursors, to])}
    />
  )
}
