/** Signals that stop a process; a closed terminal sends SIGHUP. */
export const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * Calls `stop` at a stop signal; a second signal of the same kind ends the process.
 * @returns a function that removes the handlers
 */
export function onStopSignal(stop: () => void): () => void {
  for (const signal of stopSignals) process.once(signal, stop)
  return () => {
    for (const signal of stopSignals) process.off(signal, stop)
  }
}

/** Runs work that a stop signal, or a call of `stop`, aborts through `signal`. */
export async function interruptible<Result>(
  work: (signal: AbortSignal, stop: () => void) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  const stop = () => controller.abort(new Error('Interrupted'))
  const ignoreSignals = onStopSignal(stop)
  try {
    return await work(controller.signal, stop)
  } finally {
    ignoreSignals()
  }
}
