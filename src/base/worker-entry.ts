/** The file of a thread's entry, by its name in `workers`. scripts/bundle.mjs bundles each that is named in a call. */
export function workerEntry(name: string): URL {
  // Two folders below the top, as the files of the bundle are.
  return new URL(`../../workers/${name}.js`, import.meta.url)
}
