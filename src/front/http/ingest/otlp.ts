import { asBuffer } from '../../../base/bytes.js'
import { refuse, refusalOf, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { OtlpDecoder, OtlpFault, OtlpLines, OtlpTask } from '../../../protocol/otlp-tasks.js'
import { agentRefusal } from '../../routes/parameters.js'
import type { Answer, IngestRequest } from '../../routes/route.js'
import { bodyOf, readWhole, RecordedBody, type BodySource } from './array-body.js'
import type { IngestStream } from './commands.js'
import { LineIngest } from './stream.js'
import { answerBroken, refuseWhole } from './whole.js'

/**
 * Ingests an OTLP request (docs/adr/0049-otlp.md): reads it as a whole, because nothing may be written before
 * it is known to be one, has it decoded to lines in a thread of the pool, and writes the lines.
 */
export async function ingestOtlp(
  stream: IngestStream,
  { otlp, decoder }: { otlp: NonNullable<IngestRequest['otlp']>; decoder: OtlpDecoder },
  body: BodySource,
): Promise<Answer | Refusal | undefined> {
  const { memory, request, lineBytesMax } = stream
  // JSON is parsed as a whole, and takes many times its bytes.
  const bytesMax = otlp.encoding === 'json' ? limits.ingestAtomicBytesMax : limits.ingestArrayBytesMax
  const whole = await readWhole(body, { memory, bytesMax })
  if (!('bytes' in whole)) return answerBroken(whole)
  const keeps = request.onError === 'keep'
  const task = { ...otlp, body: inSharedMemory(whole.bytes), recordBytesMax: lineBytesMax, keeps }
  const decoded = await decode(decoder, task)
  if (body.interruption !== undefined) return answerBroken(body.interruption)
  if ('detail' in decoded) {
    if (!keeps || decoded.code !== 'validation_failed') return decoded
    return refuseWhole(stream, new RecordedBody(bodyOf(whole.bytes, body), memory), decoded)
  }
  const { lines, agent } = decoded
  const refused = decoded.refused.map(({ line, agent, bytes, code, detail }) => {
    return { firstLine: line, agent, bytes: asBuffer(bytes), refusal: refuse(code, detail) }
  })
  const bytes = refused.reduce((sum, record) => sum + record.bytes.length, lines.length)
  // Counted until the answer, as the body is.
  if (!memory.add(bytes)) return answerBroken(body.interruption ?? { gone: true })
  // Lines of one agent need not be searched for theirs.
  const isKnown = agent !== undefined && agentRefusal(stream, agent) === undefined
  const known = isKnown ? { ...request, otlp: { ...otlp, agent } } : request
  return new LineIngest({ ...stream, request: known }).run(bodyOf(asBuffer(lines), body), refused)
}

async function decode(decoder: OtlpDecoder, task: OtlpTask): Promise<OtlpLines | OtlpFault | Refusal> {
  try {
    return await decoder.decode(task)
  } catch (error) {
    return refusalOf(error)
  }
}

/** A copy that is passed to other threads as it is: to clone 16 MiB would stall this one. */
function inSharedMemory(bytes: Buffer): Uint8Array {
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length))
  shared.set(bytes)
  return shared
}
