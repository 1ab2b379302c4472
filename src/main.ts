import type { Config } from './config.js'
import type { DataDirectory } from './data-directory.js'

/** A server that answers requests. */
export interface RunningServer {
  /** Where it listens, with the port in force: `http://127.0.0.1:8787`. */
  readonly url: string
  /** Stops accepting, finishes what is in flight and closes the stores, within `config.shutdownTimeoutSecs`. */
  stop(): Promise<void>
}

/**
 * Starts the server on a data directory that this process has the lock of; the caller closes that after `stop`.
 * @throws Error when the address cannot be listened on
 */
export async function serve(_config: Config, _directory: DataDirectory): Promise<RunningServer> {
  throw new Error('The server is not part of this build')
}
