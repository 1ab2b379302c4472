/** Signals that ask a process to stop; a terminal that is closed sends SIGHUP. */
export const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Calls `stop` at a signal; a second one of the same kind ends the process. @returns a function that takes this back */
export function onStopSignal(stop: () => void): () => void {
  for (const signal of stopSignals) process.once(signal, stop)
  return () => {
    for (const signal of stopSignals) process.off(signal, stop)
  }
}
