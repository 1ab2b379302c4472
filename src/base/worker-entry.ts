/**
 * The entry file of a thread in `workers`. scripts/bundle.mjs bundles each name that a call of this function
 * has.
 */
export function workerEntry(name: string): URL {
  // The files of the bundle are two folders below its top, as this one is.
  return new URL(`../../workers/${name}.js`, import.meta.url)
}
