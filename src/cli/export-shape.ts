import { limits } from '../base/limits.js'

/** Bytes of the first line of an export. */
const MANIFEST_BYTES_MAX = 65_536

const LINE_FEED = 10

/** The lines of an export beside its records: the manifest and the trailer. */
const LINES_BESIDE = 2

/**
 * Holds bytes that a server sends to what an export looks like, as they come: it begins with a manifest, has no more
 * lines than that promises, and no line that is longer than any of an export. Whether it is true, `strandfast verify` says.
 */
export class ExportShape {
  /** Lines that have come to their end. */
  lines = 0
  #lineBytes = 0
  #first = Buffer.alloc(0)
  #linesMax = Number.POSITIVE_INFINITY

  /** @throws Error when they are no part of an export */
  take(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      const found = bytes.indexOf(LINE_FEED, from)
      const end = found === -1 ? bytes.length : found
      this.#lineBytes += end - from
      const bytesMax = this.lines === 0 ? MANIFEST_BYTES_MAX : limits.importLineBytesMax
      if (this.#lineBytes > bytesMax || this.lines >= this.#linesMax) throw new Error(noExport)
      if (this.lines === 0) this.#first = Buffer.concat([this.#first, bytes.subarray(from, end)])
      if (found !== -1) this.#endLine()
      from = end + 1
    }
  }

  #endLine(): void {
    if (this.lines === 0) this.#linesMax = linesOf(this.#first.toString())
    this.lines++
    this.#lineBytes = 0
  }
}

const noExport = 'The server answers something that is no export'

/** How many lines an export with this manifest has at the most. @throws Error when it is none */
function linesOf(text: string): number {
  let manifest: unknown
  try {
    manifest = JSON.parse(text)
  } catch {
    throw new Error(noExport)
  }
  if (typeof manifest !== 'object' || manifest === null || !('format' in manifest)) throw new Error(noExport)
  if (manifest.format !== 'strand-export/v1') throw new Error(noExport)
  const from = 'from_seq' in manifest ? manifest.from_seq : undefined
  const to = 'to_seq' in manifest ? manifest.to_seq : undefined
  if (typeof from !== 'number' || typeof to !== 'number') throw new Error(noExport)
  return to - from + 1 + LINES_BESIDE
}
