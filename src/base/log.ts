import { type DestinationStream, type Logger, destination, pino } from 'pino'
import { limits } from './limits/limits.js'

/** Levels that SERVICE_LOG_LEVEL names, the most severe first. */
export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

export type { Logger }

/** Members that never reach a log, in any object and one level within it. */
const secretNames = [
  'authorization',
  'Authorization',
  'cookie',
  'Cookie',
  'set-cookie',
  'key',
  'apiKey',
  'api_key',
  'rootApiKey',
  'rootKey',
  'rootKeyCreated',
  'secret',
  'secretKey',
  'privateKey',
  'seed',
  'seedHex',
  'seed_hex',
  'masterSeed',
  'password',
  'token',
  'refreshToken',
  'refresh_token',
  'ticket',
]

const REDACTED = '[redacted]'

const secretPaths = secretNames.flatMap((name) => {
  const member = `["${name}"]`
  return [member, `*${member}`, `*.*${member}`]
})

/**
 * Makes the logger of one part of the server: JSON lines on standard error, since standard output has only the line
 * that says where the server listens (docs/OPERATIONS.md, The process).
 * @param part names the part in each line
 * @param to takes the lines instead of standard error
 */
export function createLogger(
  level: (typeof logLevels)[number],
  part: string,
  to: DestinationStream = logDestination(2),
): Logger {
  return pino(
    {
      level,
      base: { part },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretPaths, censor: REDACTED },
    },
    to,
  )
}

/**
 * Where lines go: while they cannot be written, on a full disk or a closed terminal, they wait up to a bound, and later ones
 * are dropped: that ends nothing.
 */
export function logDestination(fd: number): ReturnType<typeof destination> {
  const to = destination({ dest: fd, sync: true, maxLength: limits.logWaitingBytesMax })
  to.on('error', () => {})
  // A line that is dropped would not try to write those that wait, ever again.
  to.on('drop', () => to.write(''))
  return to
}
