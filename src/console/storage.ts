/*
 * What the browser stores: in localStorage the appearance, the time zone, the results of checks and the id of
 * the session, none of them secret; in sessionStorage, which ends with the tab, the key and the chosen columns.
 * A browser can forbid both.
 */

/** Texts by name in one of the browser's storages. */
export interface TextStore {
  read(name: string): string | undefined
  /** @param text undefined removes it */
  write(name: string, text: string | undefined): void
}

const PREFIX = 'strandfast.'

/** localStorage: stays until the user of the browser clears it. */
export const persistentStore: TextStore = storeIn(() => globalThis.localStorage)

/** sessionStorage: ends with the tab. */
export const tabStore: TextStore = storeIn(() => globalThis.sessionStorage)

/** Removes everything that the console has stored in sessionStorage. */
export function clearTabStore(): void {
  const storage = available(() => globalThis.sessionStorage)
  if (storage === undefined) return
  for (const name of Object.keys(storage)) if (name.startsWith(PREFIX)) storage.removeItem(name)
}

function storeIn(open: () => Storage): TextStore {
  return {
    read: (name) => available(open)?.getItem(PREFIX + name) ?? undefined,
    write(name, text) {
      const storage = available(open)
      if (text === undefined) storage?.removeItem(PREFIX + name)
      else storage?.setItem(PREFIX + name, text)
    },
  }
}

/** Reading the property throws if the browser forbids storage. */
function available(open: () => Storage): Storage | undefined {
  try {
    return open()
  } catch {
    return undefined
  }
}
