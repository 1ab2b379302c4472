/**
 * A part of a run, such as a figure or a workload, with its run.
 * @template Run, Part
 * @typedef {{run: Run, part: Part}} Recorded
 */

/**
 * The newest result of each part in any run except quick ones, because a run need not measure everything. The
 * last results of a scenario replace all earlier ones, so that discontinued figures disappear.
 * @template Run, Part
 * @param {string} text one JSON line per run, the oldest first
 * @param {{partsOf: (run: Run) => Part[], groupOf: (part: Part) => string, nameOf: (part: Part) => string}}
 * how `groupOf`: what is measured together; the name of the part if a run did not record that
 * @returns {Recorded<Run, Part>[]} in order of first appearance
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
