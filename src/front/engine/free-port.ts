import { once } from 'node:events'
import { createServer } from 'node:net'

/** The address to listen on; port 0 is any free port. */
export interface Address {
  host: string
  port: number
}

const faults: Readonly<Record<string, (address: Address) => string>> = {
  EADDRINUSE: ({ host, port }) =>
    `Port ${port} of ${host} is in use (EADDRINUSE): stop the program that has it, or set SERVICE_PORT to another`,
  EADDRNOTAVAIL: ({ host }) =>
    `${host} is not an address of this machine (EADDRNOTAVAIL): set SERVICE_HOST to one that is`,
  EACCES: ({ port }) =>
    `The user of this process may not listen on port ${port} (EACCES): set SERVICE_PORT to 1024 or higher`,
  ENOTFOUND: ({ host }) =>
    `The host name ${host} cannot be resolved (ENOTFOUND): set SERVICE_HOST to another`,
}

/**
 * Checks that a port is free by listening on it for a moment. uWebSockets.js shares a port with any process
 * that already listens on it (SO_REUSEPORT), so two servers would each get some of the connections. With its
 * exclusive option, a server could not restart while old connections linger.
 * @throws Error that says why the port cannot be used, and what to do
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
    const otherFault = () => `The server cannot listen on port ${port} of ${host}: ${String(error)}`
    throw new Error((faults[code] ?? otherFault)(address), { cause: error })
  }
  probe.close()
  await once(probe, 'close')
}
