import { refusalOf } from '../src/base/errors.js'
import type { OtlpFault, OtlpLines, OtlpTask } from '../src/protocol/otlp-tasks.js'
import { OtlpLineWriter } from './otlp/lines.js'

/* Decodes OTLP requests, in a thread of the pool that opens no file. */

/** Does nothing. Its result shows the pool that a thread could be started. */
export function begin(): void {}

/** Converts a request to lines `{agent, data, type}`; returns the fault of a body that is not a request. */
export function otlpLines(task: OtlpTask): OtlpLines | OtlpFault {
  const writer = new OtlpLineWriter(task)
  try {
    return writer.write()
  } catch (error) {
    const { code, detail } = refusalOf(error)
    return { code, detail }
  }
}
