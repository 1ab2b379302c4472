/** One event of a text/event-stream. */
export interface ServerSentEvent {
  /** Event type; `message` by default. */
  event: string
  /** Data lines, joined by LF; empty if the event only advances the cursor. */
  data: string
  /** Last event id, of this event or an earlier one; empty before the first id. */
  id: string
}

/**
 * Maximum length of one event in UTF-16 code units; a record's body is at most 1 MiB before it is escaped.
 */
const EVENT_CHARS_MAX = 16_777_216

const LINE_END = /\r\n|\r|\n/g

/**
 * Parses text/event-stream in pieces of any size (WHATWG HTML, 9.2.6). Differs from EventSource in one way: a
 * block with an id but without data is also returned, so that the cursor advances.
 */
export class EventStreamParser {
  /** The incomplete last line. It contains no line end, so it is not scanned again. */
  #begun = ''
  #started = false
  #endedWithCr = false
  #event = ''
  #data: string[] = []
  #dataChars = 0
  #id = ''
  #idNamed = false
  #retryMs: number | undefined

  /** The reconnection time of the stream in milliseconds; undefined if it has set none. */
  get retryMs(): number | undefined {
    return this.#retryMs
  }

  /**
   * Parses the next piece of text. @returns the events that it completes
   * @throws RangeError if an event is longer than 16 Mi characters
   */
  push(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = []
    const text = this.#begun + this.#withoutPrefix(piece)
    let lineStart = 0
    LINE_END.lastIndex = this.#begun.length
    for (let end = LINE_END.exec(text); end !== null; end = LINE_END.exec(text)) {
      this.#takeLine(text.slice(lineStart, end.index), events)
      lineStart = LINE_END.lastIndex
    }
    this.#begun = text.slice(lineStart)
    if (this.#begun.length + this.#dataChars > EVENT_CHARS_MAX) {
      throw new RangeError(`An event of the stream is longer than ${EVENT_CHARS_MAX} characters`)
    }
    return events
  }

  /** Removes the byte order mark of the stream, and the LF of a CRLF that was split between pieces. */
  #withoutPrefix(piece: string): string {
    if (piece === '') return piece
    const isMark = !this.#started && piece.startsWith('\uFEFF')
    const isSecondHalfOfCrlf = this.#endedWithCr && piece.startsWith('\n')
    this.#started = true
    this.#endedWithCr = piece.endsWith('\r')
    return isMark || isSecondHalfOfCrlf ? piece.slice(1) : piece
  }

  #takeLine(line: string, events: ServerSentEvent[]): void {
    if (line === '') return this.#endBlock(events)
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const rest = colon === -1 ? '' : line.slice(colon + 1)
    this.#takeField(field, rest.startsWith(' ') ? rest.slice(1) : rest)
  }

  #takeField(field: string, value: string): void {
    if (field === 'data') {
      this.#data.push(value)
      this.#dataChars += value.length + 1
    } else if (field === 'event') {
      this.#event = value
    } else if (field === 'id' && !value.includes('\0')) {
      this.#id = value
      this.#idNamed = true
    } else if (field === 'retry' && /^\d{1,9}$/.test(value)) {
      this.#retryMs = Number(value)
    }
  }

  #endBlock(events: ServerSentEvent[]): void {
    if (this.#data.length > 0 || this.#idNamed) {
      const event = this.#event === '' ? 'message' : this.#event
      events.push({ event, data: this.#data.join('\n'), id: this.#id })
    }
    this.#event = ''
    this.#data = []
    this.#dataChars = 0
    this.#idNamed = false
  }
}
