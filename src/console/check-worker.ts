import { verifyExport } from '../client/verify-export.js'
import { textLines } from '../client/text-lines.js'
import { webCryptoJobs } from '../client/webcrypto.js'
import { isBlankLine, parseLine } from '../proof/export-lines.js'
import { utf8 } from '../proof/hex.js'
import type { CheckOptions, FromChecker, ToChecker } from './parts/proof/check-messages.js'

/*
 * Checks one export, away from the page's thread. It asks for each piece, so that no more than one waits.
 */

let take: ((piece: Uint8Array | undefined) => void) | undefined

onmessage = ({ data }: MessageEvent<ToChecker>) => {
  switch (data.kind) {
    case 'begin':
      void check(data.options)
      return
    case 'piece':
      take?.(data.bytes)
      return
    case 'end':
      take?.(undefined)
  }
}

function tell(message: FromChecker): void {
  postMessage(message)
}

async function check({ firstHash, ...options }: CheckOptions): Promise<void> {
  const ends: Ends = { first: undefined, last: undefined }
  try {
    const result = await verifyExport(watched(pieces(), ends), {
      ...options,
      onProgress: (records) => tell({ kind: 'progress', records }),
    })
    const found = result.ok && firstHash !== undefined ? await firstFault(ends, firstHash) : undefined
    const trailer = ends.last === undefined ? undefined : parseLine(ends.last)
    const checkpoint = trailer !== undefined && 'trailer' in trailer ? trailer.trailer.checkpoint : undefined
    tell({ kind: 'result', result: found ?? result, checkpoint })
  } catch (error) {
    tell({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  }
}

/** The lines that are looked at beside the check: the first record and the trailer. */
interface Ends {
  first: string | undefined
  last: string | undefined
}

async function* pieces(): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const piece = await new Promise<Uint8Array | undefined>((resolve) => {
      take = resolve
      tell({ kind: 'more' })
    })
    if (piece === undefined) return
    yield piece
  }
}

/** The lines as they are, noting the first record and the last line. */
async function* watched(
  source: AsyncIterable<Uint8Array>,
  ends: Ends,
): AsyncGenerator<string | Uint8Array, void> {
  let line = 0
  for await (const text of textLines(source)) {
    line += 1
    // A byte that is in no UTF-8 text: the check meets it, and names the line.
    if (typeof text !== 'string') return yield Uint8Array.of(0xff)
    if (line === 2) ends.first = text
    if (!isBlankLine(text)) ends.last = text
    yield `${text}\n`
  }
}

/** What is wrong with a first record that an earlier check ended at. */
async function firstFault({ first }: Ends, firstHash: string) {
  const line = first === undefined ? undefined : parseLine(first)
  if (line === undefined || !('record' in line)) return undefined
  const hash = await webCryptoJobs().hash(utf8(`\0${line.record.h}`))
  if (hash === firstHash) return undefined
  const seq = Number(/\nseq ([0-9]+)\n/.exec(line.record.h)?.[1])
  const reason = `The record is another than the one that was checked before, whose hash was ${firstHash}`
  return { ok: false, line: 2, seq, reason } as const
}
