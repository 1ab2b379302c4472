import { once } from 'node:events'
import { type Server, type Socket, createServer } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** A mail that a server received. */
export interface Received {
  from: string
  to: string[]
  raw: string
}

/** A mail server on loopback. */
export interface TestSmtpServer {
  url: string
  received: Received[]
  close(): Promise<void>
}

/** Starts a real mail server that records its mails; with `options`, it can refuse them. */
export async function startSmtp(options: SMTPServerOptions = {}): Promise<TestSmtpServer> {
  const received: Received[] = []
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    authOptional: true,
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 1,
    onData(stream, session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
        })
        callback()
      })
    },
    ...options,
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  return {
    url: urlOf(server.server),
    received,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** Starts a server of plain sockets, to simulate one that is silent or crashes. */
export async function startSockets(
  onSocket: (socket: Socket) => void,
): Promise<{ url: string; sockets: Socket[]; close(): Promise<void> }> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    onSocket(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: urlOf(server),
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Speaks SMTP until a command, then closes the connection. */
export function dieAfter(command: 'EHLO' | 'DATA' | 'the content'): (socket: Socket) => void {
  return (socket) => {
    socket.write('220 test\r\n')
    let inData = false
    socket.on('data', (chunk) => {
      const text = String(chunk)
      if (inData) {
        if (text.endsWith('\r\n.\r\n')) socket.destroy()
        return
      }
      if (text.startsWith(command)) {
        socket.destroy()
      } else if (text.startsWith('DATA')) {
        inData = true
        socket.write('354 go\r\n')
      } else socket.write('250 ok\r\n')
    })
  }
}

function urlOf(server: Server): string {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return `smtp://127.0.0.1:${address.port}`
}
