import { asBuffer } from '../src/base/bytes.js'

/** The body of a stored record, which is parsed when somebody first looks into it, and only then. */
export class RecordBody {
  readonly #bytes: Uint8Array
  #parsed: { value: unknown } | undefined

  /** @param bytes its canonical JSON text, UTF-8 */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get value(): unknown {
    this.#parsed ??= { value: JSON.parse(asBuffer(this.#bytes).toString()) }
    return this.#parsed.value
  }
}
