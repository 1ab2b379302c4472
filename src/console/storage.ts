/*
 * What the browser stores: in localStorage the appearance, the time zone, the results of checks and the id of
 * the session, none of them secret; in sessionStorage, which ends with the tab, the key and the chosen columns.
 * A browser can forbid both, or have no space left: then a text ends with the page.
 */

/** Texts by name in one of the browser's storages. */
interface TextStore {
  read(name: string): string | undefined
  /** @param text undefined removes it */
  write(name: string, text: string | undefined): void
}

const PREFIX = 'strandfast.'

/** localStorage: stays until the user of the browser clears it. */
export const persistentStore: TextStore = storeIn(
  () => globalThis.localStorage,
  (name) => name,
)

/** sessionStorage: ends with the tab. It has texts of this server alone. */
export const tabStore: TextStore & { clear(): void } = storeIn(() => globalThis.sessionStorage, here)

/** A name of this server: a proxy can serve several below one origin. */
export function here(name: string): string {
  return `${name} ${new URL('.', location.href).pathname}`
}

function storeIn(open: () => Storage, nameOf: (name: string) => string): TextStore & { clear(): void } {
  /** What the browser does not store. */
  const unstored = new Map<string, string>()
  /** Uses the storage; reading its property throws if the browser forbids it. */
  const tried = <T>(access: (storage: Storage) => T): T | undefined => {
    try {
      return access(open())
    } catch {
      return undefined
    }
  }
  const remove = (stored: string): void => {
    unstored.delete(stored)
    tried((storage) => storage.removeItem(stored))
  }
  return {
    read(name) {
      const stored = PREFIX + nameOf(name)
      return unstored.get(stored) ?? tried((storage) => storage.getItem(stored)) ?? undefined
    },
    write(name, text) {
      const stored = PREFIX + nameOf(name)
      remove(stored)
      if (text === undefined) return
      tried((storage) => storage.setItem(stored, text))
      if (tried((storage) => storage.getItem(stored)) !== text) unstored.set(stored, text)
    },
    clear() {
      const all = [...unstored.keys(), ...(tried((storage) => Object.keys(storage)) ?? [])]
      for (const stored of all) if (stored.startsWith(PREFIX) && stored.endsWith(nameOf(''))) remove(stored)
    },
  }
}
