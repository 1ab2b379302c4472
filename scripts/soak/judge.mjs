/**
 * A sample of a server's process: seconds since the start of the load, anonymous resident memory, open
 * handles, threads, bytes of all store files and all log files, and records written so far.
 * @typedef {{secs: number, memoryBytes: number, handles: number, threads: number, fileBytes: number,
 * logBytes: number, records: number}} Sample
 */

/**
 * A start after a crash: seconds since the start of the load, its duration, and the replayed commits.
 * @typedef {{secs: number, tookSecs: number, replayed: number}} Start
 */

/**
 * A measured growth, and the most that counts as flat.
 * @typedef {{name: string, found: number, most: number, unit: string, flat: boolean}} Verdict
 */

/** The allowed growth from the end of the warm-up to the end of the run. */
const GROWTH_MOST = {
  memoryBytes: 32 * 2 ** 20,
  handles: 3,
  threads: 1,
  logBytes: 32 * 2 ** 20,
  tookSecs: 0.5,
  replayed: 500,
}
/** The allowed ratio of file bytes per record in the second half of the run to the first. */
const FILE_RATIO_MOST = 1.25
/** The share of the run for warm-up, in which caches fill, threads start and heaps grow. */
const WARM_UP = 1 / 3
/** The number of points of a slope. */
const POINTS = 24

/**
 * Judges whether a server stays flat under a constant load.
 *
 * The values of a process start again with each start. So for a server that was killed repeatedly, the last
 * values of its processes are compared. With few processes, only values that outlive a process are judged.
 *
 * Each series is divided into spans, of which the lowest value counts: uncollected garbage and short
 * connections are above it, and a leak raises it. Growth is the Theil-Sen slope of these points (Sen 1968),
 * which is robust against outliers, times the judged time.
 * @param {readonly Sample[]} samples in order of time, at equal intervals
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

/** File bytes per record: the file may grow with the data, but not faster. */
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
