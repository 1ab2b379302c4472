import { verifyExport } from '../client/verify-export.js'
import { textLines } from '../client/text-lines.js'
import { webCryptoJobs } from '../client/webcrypto.js'
import { isBlankLine, parseLine } from '../proof/export-lines.js'
import { utf8 } from '../proof/hex.js'
import type { CheckOptions, FromChecker, ToChecker } from './parts/proof/checker.js'

/*
 * Checks one export outside the page's thread. It requests one piece at a time, so at most one is pending.
 */

let deliver: ((piece: Uint8Array | undefined) => void) | undefined

onmessage = ({ data }: MessageEvent<ToChecker>) => {
  switch (data.kind) {
    case 'begin':
      void check(data.options)
      return
    case 'piece':
      deliver?.(data.bytes)
      return
    case 'end':
      deliver?.(undefined)
  }
}

function post(message: FromChecker): void {
  postMessage(message)
}

async function check({ firstHash, ...options }: CheckOptions): Promise<void> {
  const edges: EdgeLines = { first: undefined, last: undefined }
  try {
    const result = await verifyExport(watched(pieces(), edges), {
      ...options,
      onProgress: (records) => post({ kind: 'progress', records }),
    })
    const found = result.ok && firstHash !== undefined ? await firstRecordFault(edges, firstHash) : undefined
    const trailer = edges.last === undefined ? undefined : parseLine(edges.last)
    const checkpoint = trailer !== undefined && 'trailer' in trailer ? trailer.trailer.checkpoint : undefined
    post({ kind: 'result', result: found ?? result, checkpoint })
  } catch (error) {
    post({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  }
}

/** Lines that are inspected in addition to the check: the first record and the trailer. */
interface EdgeLines {
  first: string | undefined
  last: string | undefined
}

async function* pieces(): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const piece = await new Promise<Uint8Array | undefined>((resolve) => {
      deliver = resolve
      post({ kind: 'more' })
    })
    if (piece === undefined) return
    yield piece
  }
}

/** Passes the lines on, and remembers the first record and the last line. */
async function* watched(
  source: AsyncIterable<Uint8Array>,
  edges: EdgeLines,
): AsyncGenerator<string | Uint8Array, void> {
  let line = 0
  for await (const text of textLines(source)) {
    line += 1
    // This byte is invalid UTF-8, so the check fails here and names the line.
    if (typeof text !== 'string') return yield Uint8Array.of(0xff)
    if (line === 2) edges.first = text
    if (!isBlankLine(text)) edges.last = text
    yield `${text}\n`
  }
}

/** Compares the first record with the hash at which an earlier check ended. */
async function firstRecordFault({ first }: EdgeLines, firstHash: string) {
  const line = first === undefined ? undefined : parseLine(first)
  if (line === undefined || !('record' in line)) return undefined
  const hash = await webCryptoJobs().hash(utf8(`\0${line.record.h}`))
  if (hash === firstHash) return undefined
  const seq = Number(/\nseq ([0-9]+)\n/.exec(line.record.h)?.[1])
  const reason = `The record differs from the one that was checked before, whose hash was ${firstHash}`
  return { ok: false, line: 2, seq, reason } as const
}
