/*
 * What stays in the browser: in localStorage the appearance and what was found of strands, none of it secret; in
 * sessionStorage, which ends with the tab, the key and the chosen columns. A browser can forbid both.
 */

/** Texts by their names, as the browser keeps them. */
export interface Shelf {
  read(name: string): string | undefined
  /** @param text undefined removes it */
  write(name: string, text: string | undefined): void
}

const PREFIX = 'strandfast.'

/** Kept until the reader of the page removes it. */
export const lasting: Shelf = shelf(() => globalThis.localStorage)

/** Kept until the tab closes. */
export const passing: Shelf = shelf(() => globalThis.sessionStorage)

/** Forgets everything that is kept until the tab closes. */
export function forgetPassing(): void {
  const storage = available(() => globalThis.sessionStorage)
  if (storage === undefined) return
  for (const name of Object.keys(storage)) if (name.startsWith(PREFIX)) storage.removeItem(name)
}

function shelf(open: () => Storage): Shelf {
  return {
    read: (name) => available(open)?.getItem(PREFIX + name) ?? undefined,
    write(name, text) {
      const storage = available(open)
      if (text === undefined) storage?.removeItem(PREFIX + name)
      else storage?.setItem(PREFIX + name, text)
    },
  }
}

/** Reading the property throws where the browser forbids storage. */
function available(open: () => Storage): Storage | undefined {
  try {
    return open()
  } catch {
    return undefined
  }
}
