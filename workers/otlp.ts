import { move, transferableSymbol, valueSymbol } from 'piscina'
import { refusalOf } from '../src/base/errors.js'
import { memoryOf, type OtlpFault, type OtlpPart, type OtlpTask } from '../src/otlp/tasks.js'
import { OtlpLineWriter } from '../src/otlp/lines.js'

/* Decodes OTLP requests, in a thread of the pool that opens no file. */

/** Does nothing. Its result shows the pool that a thread could be started. */
export function begin(): void {}

/** As `otlpPart`. The memory of the result moves to the thread of the pool. */
export function otlpLines(task: OtlpTask): unknown {
  const found = otlpPart(task)
  return move({ [transferableSymbol]: memoryOf(found), [valueSymbol]: found })
}

/** Converts a part of a request to lines; returns the fault of a body that is not a request. */
export function otlpPart(task: OtlpTask): OtlpPart | OtlpFault {
  try {
    return new OtlpLineWriter(task).write()
  } catch (error) {
    const { code, detail } = refusalOf(error)
    return { code, detail, body: task.body }
  }
}
