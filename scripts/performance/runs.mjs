/**
 * The newest run that tells everything: not a quick one, and without fewer parts than any run before it.
 * @template T
 * @param {string} text one JSON line a run
 * @param {(run: T) => unknown[]} partsOf scenarios or workloads
 * @returns {T | undefined}
 */
export function newestWholeRun(text, partsOf) {
  let newest
  for (const line of text.split('\n').filter(Boolean)) {
    const run = JSON.parse(line)
    if (!run.quick && partsOf(run).length >= (newest === undefined ? 1 : partsOf(newest).length)) newest = run
  }
  return newest
}
