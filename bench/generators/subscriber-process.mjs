/**
 * Holds many streams on raw sockets in a separate process and counts the events of each. It receives
 * `{url, path, subscribers, headers}`, sends `{ready: true}` when all streams are open, receives
 * `{expected}`, and sends `{deliveries, least, most, lastAtMs, sample}` once each stream has so many events,
 * or when no more arrive for a while.
 */
import { createConnection } from 'node:net'
import { once } from 'node:events'

/** Is in every event of a record and nowhere else, because JSON has no raw line breaks. */
const MARK = Buffer.from('event: record\n')
const HEAD_OK = 'HTTP/1.1 200'
const SAMPLE_CHARS = 65_536
const nothing = Buffer.alloc(0)
/** All sockets read into this buffer: a new buffer for each read would cost more than the counting. */
const shared = Buffer.alloc(262_144)
/** Streams that are opened in parallel: more would overflow the listen backlog. */
const CONCURRENT_OPENS = 50
/** After this time without an event, missing events are no longer expected, milliseconds. */
const IDLE_MS_MAX = 5_000
/** Time after the last expected event in which surplus events could still arrive, milliseconds. */
const GRACE_MS = 300

const state = { deliveries: 0, lastAtMs: 0, sample: '' }
/** @type {{count: number, tail: Buffer}[]} */
const streams = []

process.once('message', async ({ url, path, subscribers, headers }) => {
  const { port } = new URL(url)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n${lines.join('')}\r\n`
  const sockets = []
  while (sockets.length < subscribers) {
    const count = Math.min(CONCURRENT_OPENS, subscribers - sockets.length)
    sockets.push(...(await Promise.all(Array.from({ length: count }, () => open(Number(port), head)))))
  }
  process.send({ ready: true })
  const [{ expected }] = await once(process, 'message')
  await allReceived(expected)
  const counts = streams.map(({ count }) => count)
  const answer = { ...state, least: Math.min(...counts), most: Math.max(...counts) }
  process.send(answer, () => {
    for (const socket of sockets) socket.destroy()
    process.disconnect()
  })
})

function open(port, head) {
  const stream = { count: 0, tail: nothing }
  return new Promise((resolve, reject) => {
    const answered = (piece) => {
      const status = piece.toString('latin1', 0, HEAD_OK.length)
      if (status !== HEAD_OK) return reject(new Error(`Stream refused: ${piece}`))
      const isFirst = streams.push(stream) === 1
      take = isFirst ? (piece) => receiveFirst(stream, piece) : (piece) => receive(stream, piece)
      resolve(socket)
    }
    let take = answered
    const callback = (length, buffer) => {
      take(buffer.subarray(0, length))
      return true
    }
    const socket = createConnection({ port, host: '127.0.0.1', onread: { buffer: shared, callback } })
    socket.on('error', reject)
    socket.write(head)
  })
}

/** The first stream also stores its text, so that the bench can inspect an event. */
function receiveFirst(stream, piece) {
  if (state.sample.length < SAMPLE_CHARS) state.sample += piece.toString('utf8')
  receive(stream, piece)
}

function receive(stream, piece) {
  let count = marksIn(piece)
  if (stream.tail.length > 0) {
    // A mark can span two pieces.
    count += marksIn(Buffer.concat([stream.tail, piece.subarray(0, MARK.length - 1)]))
  }
  // Most pieces end with a line break, and no partial mark does.
  if (piece.at(-1) === 0x0a) stream.tail = nothing
  else stream.tail = Buffer.from(Buffer.concat([stream.tail, piece]).subarray(-(MARK.length - 1)))
  if (count === 0) return
  stream.count += count
  state.deliveries += count
  state.lastAtMs = Date.now()
}

function marksIn(bytes) {
  let count = 0
  for (let at = bytes.indexOf(MARK); at !== -1; at = bytes.indexOf(MARK, at + MARK.length)) count++
  return count
}

/**
 * Resolves when all streams have their events and the grace time has passed, or after a time without events.
 */
function allReceived(expected) {
  let before = -1
  let idleSinceMs = Date.now()
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const nowMs = Date.now()
      if (state.deliveries !== before) idleSinceMs = nowMs
      before = state.deliveries
      const complete = state.deliveries >= expected * streams.length
      if (nowMs - idleSinceMs < (complete ? GRACE_MS : IDLE_MS_MAX)) return
      clearInterval(timer)
      resolve()
    }, 20)
  })
}
