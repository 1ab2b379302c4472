/** Signals that ask a process to stop; a terminal that is closed sends SIGHUP. */
export const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Calls `stop` at a signal; a second one of the same kind ends the process. @returns a function that takes this back */
export function onStopSignal(stop: () => void): () => void {
  for (const signal of stopSignals) process.once(signal, stop)
  return () => {
    for (const signal of stopSignals) process.off(signal, stop)
  }
}

/** Does work that such a signal ends: `signal` then has the reason, as after a call of `stop`. */
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
