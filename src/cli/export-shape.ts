import { limits } from '../base/limits/limits.js'
import { lineEnd } from '../base/line-splitter.js'

/** Bytes of the first line of an export. */
const MANIFEST_BYTES_MAX = 65_536

/** The lines of an export besides its records: the manifest and the trailer. */
const LINES_BESIDE = 2

/**
 * Checks that bytes from a server have the form of an export, as they arrive: they begin with a manifest, have no more
 * lines than it says, and no line is too long. `strandfast verify` checks whether the export is valid.
 */
export class ExportShape {
  /** Complete lines. */
  lines = 0
  #lineBytes = 0
  #first = Buffer.alloc(0)
  #linesMax = Number.POSITIVE_INFINITY

  /** Records that the manifest names; undefined before it has arrived. */
  get records(): number | undefined {
    return Number.isFinite(this.#linesMax) ? this.#linesMax - LINES_BESIDE : undefined
  }

  /** @throws Error when they cannot be part of an export */
  take(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      const end = lineEnd(bytes, from)
      this.#lineBytes += end - from
      const bytesMax = this.lines === 0 ? MANIFEST_BYTES_MAX : limits.importLineBytesMax
      if (this.#lineBytes > bytesMax || this.lines >= this.#linesMax) throw new Error(noExport)
      if (this.lines === 0) this.#first = Buffer.concat([this.#first, bytes.subarray(from, end)])
      if (end < bytes.length) this.#endLine()
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

/** The most lines of an export with this manifest. @throws Error when it is not a manifest */
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
