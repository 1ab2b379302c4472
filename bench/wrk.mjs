/** Prefix of the one line in wrk's output that our script prints. */
const MARK = 'bench-result '

/**
 * Sends the requests of a file, one after the other, as prepared bytes: `wrk.format` would cost more than the
 * echo. wrk counts answers of 400 and up as failed. Times in microseconds.
 */
export const wrkScript = `
local requests = {}
local count = 0
local at = 0

function init(args)
  local file = assert(io.open(args[1], 'rb'))
  while true do
    local length = file:read('*n')
    if not length then break end
    file:read(1)
    count = count + 1
    requests[count] = file:read(length)
  end
  file:close()
end

function request()
  at = at % count + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('${MARK}{"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"maxUs":%d,"status":%d,"broken":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max, errors.status, broken))
end
`

/**
 * Requests as the script reads them: the length in bytes, a space, the bytes of the request.
 * @param {import('./records.mjs').LoadRequest[]} requests
 * @returns {string} of ASCII
 */
export function rawRequests(requests) {
  return requests.map((request) => `${rawRequest(request).length} ${rawRequest(request)}`).join('\n')
}

/**
 * Reads what wrk printed.
 * @param {string} output
 * @returns {import('./load.mjs').LoadResult}
 * @throws {Error} when the script's line is not there
 */
export function readWrkOutput(output) {
  const line = output.split('\n').find((line) => line.startsWith(MARK))
  if (line === undefined) throw new Error(`Expected a result of wrk, got: ${output}`)
  const { requests, durationUs, p50Us, p99Us, maxUs, status, broken } = JSON.parse(line.slice(MARK.length))
  return {
    requests,
    perSecond: (requests / durationUs) * 1_000_000,
    p50Ms: p50Us / 1_000,
    p99Ms: p99Us / 1_000,
    maxMs: maxUs / 1_000,
    failed: status + broken,
  }
}

function rawRequest({ method, path, headers, body }) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  if (body !== undefined) lines.push(`content-length: ${body.length}\r\n`)
  return `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${lines.join('')}\r\n${body ?? ''}`
}
