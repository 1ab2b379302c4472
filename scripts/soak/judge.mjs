/**
 * One sample of a server's process: seconds since the load began, bytes of anonymous memory that is resident, open
 * handles, threads, bytes of all store files and of all log files, and records that the load had written by then.
 * @typedef {{secs: number, memoryBytes: number, handles: number, threads: number, fileBytes: number, logBytes: number,
 *   records: number}} Sample
 */

/**
 * A start after a crash: seconds since the load began, those that it took, and commits that only the log had.
 * @typedef {{secs: number, tookSecs: number, replayed: number}} Start
 */

/**
 * One measured growth, and up to which growth it counts as flat.
 * @typedef {{name: string, found: number, most: number, unit: string, flat: boolean}} Verdict
 */

/** How much each may grow from the end of the warm-up to the end of the run. */
const GROWTH_MOST = {
  memoryBytes: 32 * 2 ** 20,
  handles: 3,
  threads: 1,
  logBytes: 32 * 2 ** 20,
  tookSecs: 0.5,
  replayed: 500,
}
/** How much more file a record may take in the second half of the run than in the first. */
const FILE_RATIO_MOST = 1.25
/** Part of the run that is warm-up: caches fill, threads start, heaps find their size. */
const WARM_UP = 1 / 3
/** Points that slopes are taken from. */
const POINTS = 24

/**
 * Whether a server stayed the same under a constant load.
 *
 * What a process has begins anew with each start, and fills as it goes on. So where it was killed, its lives are compared:
 * each counts as it was at its end. With few of them, only what outlives a process is judged.
 *
 * Each series is cut into spans of time, of which the lowest value counts: garbage that is not collected yet, and
 * connections that come and go, are above it, and a leak raises it. Growth is the Theil-Sen slope of these points (Sen
 * 1968), on which a few outliers have no effect, times the time that was judged.
 * @param {readonly Sample[]} samples in the order of time, at even distances
 * @param {readonly Start[]} [starts] after crashes
 * @returns {Verdict[]}
 */
export function judge(samples, starts = []) {
  const { secs: lastSecs = 0 } = samples.at(-1) ?? {}
  const warm = samples.filter(({ secs }) => secs >= lastSecs * WARM_UP)
  if (warm.length < POINTS) throw new Error(`Expected at least ${POINTS} samples after the warm-up`)
  const processes = starts.length > 1 ? endsOfLives(warm, starts) : warm
  return [
    ...(processes.length < POINTS ? [] : processGrowths(processes)),
    growth('log files', warm, { of: 'logBytes', unit: 'bytes' }),
    fileGrowth(warm),
    ...(starts.length > 1 ? startGrowths(starts) : []),
  ]
}

/** The last sample before each start. */
function endsOfLives(samples, starts) {
  return starts.flatMap((start, index) => {
    const fromSecs = starts[index - 1]?.secs ?? 0
    const life = samples.filter(({ secs }) => secs >= fromSecs && secs < start.secs)
    return life.slice(-1)
  })
}

function processGrowths(samples) {
  return [
    growth('anonymous memory', samples, { of: 'memoryBytes', unit: 'bytes' }),
    growth('open handles', samples, { of: 'handles', unit: 'handles' }),
    growth('threads', samples, { of: 'threads', unit: 'threads' }),
  ]
}

function startGrowths(starts) {
  return [
    growth('start after a crash', starts, { of: 'tookSecs', unit: 's' }),
    growth('replayed by it', starts, { of: 'replayed', unit: 'commits' }),
  ]
}

function growth(name, samples, { of, unit }) {
  const points = floors(samples.map((sample) => ({ x: sample.secs, y: sample[of] })))
  const judgedSecs = points.at(-1).x - points[0].x
  const found = theilSen(points) * judgedSecs
  const most = GROWTH_MOST[of]
  return { name, found, most, unit, flat: found <= most }
}

/** Bytes of file per record: the file may grow with the data, but not faster. */
function fileGrowth(samples) {
  const points = samples.map(({ records, fileBytes }) => ({ x: records, y: fileBytes }))
  const middle = Math.floor(points.length / 2)
  const [early, late] = [points.slice(0, middle), points.slice(middle)].map((half) => theilSen(thinned(half)))
  const found = late / early
  const flat = early > 0 && found <= FILE_RATIO_MOST
  return { name: 'file per record, late to early', found, most: FILE_RATIO_MOST, unit: '', flat }
}

/** The lowest point of each span. */
function floors(points) {
  return spans(points).map((span) => span.reduce((low, point) => (point.y < low.y ? point : low)))
}

/** The last point of each span. */
function thinned(points) {
  return spans(points).map((span) => span.at(-1))
}

function spans(points) {
  const count = Math.min(POINTS, points.length)
  const from = (index) => Math.floor((index * points.length) / count)
  return Array.from({ length: count }, (_none, index) => points.slice(from(index), from(index + 1)))
}

/**
 * The median of the slopes of all pairs of points.
 * @param {readonly {x: number, y: number}[]} points
 * @returns {number} 0 for points that all have the same x
 */
export function theilSen(points) {
  const slopes = points.flatMap((one, index) =>
    points
      .slice(index + 1)
      .filter(({ x }) => x !== one.x)
      .map((other) => (other.y - one.y) / (other.x - one.x)),
  )
  if (slopes.length === 0) return 0
  slopes.sort((one, other) => one - other)
  const middle = Math.floor(slopes.length / 2)
  return slopes.length % 2 === 1 ? slopes[middle] : (slopes[middle - 1] + slopes[middle]) / 2
}
