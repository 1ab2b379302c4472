/** One event of a text/event-stream. */
export interface ServerSentEvent {
  /** Event type; `message` unless the stream names one. */
  event: string
  /** Data lines, joined by LF; empty where only the cursor moved. */
  data: string
  /** Last event id, this event's or one before; empty while none was named. */
  id: string
}

/** UTF-16 units that one event may take; a record's body is at most 1 MiB before it is escaped. */
const EVENT_CHARS_MAX = 16_777_216

const LINE_END = /\r\n|\r|\n/g

/**
 * Reads text/event-stream in pieces of any size (WHATWG HTML, 9.2.6). Differs from EventSource in one way:
 * a block without data is given out as well when it names an id, so that the cursor is known at once.
 */
export class EventStreamParser {
  /** The line that has begun and not ended: it holds no line end, so it is never scanned twice. */
  #begun = ''
  #started = false
  #endedWithCr = false
  #event = ''
  #data: string[] = []
  #dataChars = 0
  #id = ''
  #idNamed = false
  #retryMs: number | undefined

  /** Reconnection time in milliseconds, where the stream has named one. */
  get retryMs(): number | undefined {
    return this.#retryMs
  }

  /**
   * Takes the next piece of text and gives the events that it completes.
   * @throws RangeError when one event is longer than 16 Mi characters
   */
  push(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = []
    const text = this.#begun + this.#withoutLead(piece)
    let lineStart = 0
    LINE_END.lastIndex = this.#begun.length
    for (let end = LINE_END.exec(text); end !== null; end = LINE_END.exec(text)) {
      this.#takeLine(text.slice(lineStart, end.index), events)
      lineStart = LINE_END.lastIndex
    }
    this.#begun = text.slice(lineStart)
    if (this.#begun.length + this.#dataChars > EVENT_CHARS_MAX) {
      throw new RangeError(`Expected events of at most ${EVENT_CHARS_MAX} characters`)
    }
    return events
  }

  /** Drops the stream's byte order mark, and the LF of a CRLF that was cut in two. */
  #withoutLead(piece: string): string {
    if (piece === '') return piece
    const isMark = !this.#started && piece.startsWith('\uFEFF')
    const isRestOfCrlf = this.#endedWithCr && piece.startsWith('\n')
    this.#started = true
    this.#endedWithCr = piece.endsWith('\r')
    return isMark || isRestOfCrlf ? piece.slice(1) : piece
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
