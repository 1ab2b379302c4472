/**
 * A mail server in a separate process: it listens on the given port and writes each received mail as a line
 * of JSON.
 */
import { SMTPServer } from 'smtp-server'

const server = new SMTPServer({
  disabledCommands: ['STARTTLS'],
  authOptional: true,
  disableReverseLookup: true,
  logger: false,
  closeTimeout: 1,
  onData(stream, session, callback) {
    const chunks = []
    stream.on('data', (chunk) => chunks.push(chunk))
    stream.on('end', () => {
      const to = session.envelope.rcptTo.map(({ address }) => address)
      process.stdout.write(`${JSON.stringify({ to, raw: Buffer.concat(chunks).toString() })}\n`)
      callback()
    })
  },
})

server.listen(Number(process.argv[2]), '127.0.0.1', () => process.stdout.write('"listening"\n'))
