/**
 * One part of a run, a scenario's figure or a workload, and the run that it is from.
 * @template Run, Part
 * @typedef {{run: Run, part: Part}} Recorded
 */

/**
 * The newest of each part that any run has, quick runs left out: a run need not measure everything. The last results of
 * a scenario replace all earlier ones, so that figures which it does not give any more disappear.
 * @template Run, Part
 * @param {string} text one JSON line a run, the oldest first
 * @param {{partsOf: (run: Run) => Part[], groupOf: (part: Part) => string, nameOf: (part: Part) => string}} how
 *   `groupOf`: what is measured together; where a run did not record that, the name of the part
 * @returns {Recorded<Run, Part>[]} each where it first came, whatever run it is from
 */
export function newestParts(text, { partsOf, groupOf, nameOf }) {
  const newest = new Map()
  for (const line of text.split('\n').filter(Boolean)) {
    const run = JSON.parse(line)
    if (run.quick) continue
    const parts = partsOf(run)
    const groups = new Set(parts.map(groupOf))
    const names = new Set(parts.map(nameOf))
    for (const [name, { part }] of newest)
      if (groups.has(groupOf(part)) && !names.has(name)) newest.delete(name)
    for (const part of parts) newest.set(nameOf(part), { run, part })
  }
  return [...newest.values()]
}
