import { once } from 'node:events'
import { createServer } from 'node:net'

/** Where to listen; port 0 is any free one. */
export interface Address {
  host: string
  port: number
}

/** Why nothing can listen on an address, by the error of the system. */
const faults: Readonly<Record<string, (address: Address) => string>> = {
  EADDRINUSE: ({ host, port }) =>
    `Port ${port} of ${host} is in use (EADDRINUSE): stop the program that has it, or set SERVICE_PORT to another`,
  EADDRNOTAVAIL: ({ host }) =>
    `${host} is not an address of this machine (EADDRNOTAVAIL): set SERVICE_HOST to one that is`,
  EACCES: ({ port }) =>
    `This user may not listen on port ${port} (EACCES): set SERVICE_PORT to one from 1024 up`,
  ENOTFOUND: ({ host }) => `No address is known for ${host} (ENOTFOUND): set SERVICE_HOST to another`,
}

/**
 * Looks whether a port can be listened on, by listening on it for a moment: uWebSockets.js shares a port with whoever
 * already listens on it (SO_REUSEPORT), so two servers would each get some of the connections. With its exclusive
 * option, no server could start again while old connections linger.
 * @throws Error that says why not, and what to do
 */
export async function assertFree(address: Address): Promise<void> {
  const { host, port } = address
  const probe = createServer()
  probe.listen({ host, port, exclusive: true })
  try {
    await once(probe, 'listening')
    probe.on('error', () => {})
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    const other = () => `The server cannot listen on port ${port} of ${host}: ${String(error)}`
    throw new Error((faults[code] ?? other)(address), { cause: error })
  }
  probe.close()
  await once(probe, 'close')
}
