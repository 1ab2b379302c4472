import { type DestinationStream, type Logger, destination, pino } from 'pino'
import { limits } from './limits/limits.js'

/** The values of SERVICE_LOG_LEVEL, the most severe first. */
export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

export type { Logger }

/** Members that are redacted in log lines, down to the second level. */
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
 * Creates the logger of one part of the server. It writes JSON lines to standard error; standard output only
 * has the line with the address of the server (docs/OPERATIONS.md, The process).
 * @param part the name of the part in each line
 * @param to replaces standard error
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
 * The destination of log lines. If the descriptor accepts no writes (full disk, closed terminal), lines are
 * buffered up to `logWaitingBytesMax` and further ones are dropped; the process continues.
 */
export function logDestination(fd: number): ReturnType<typeof destination> {
  const to = destination({ dest: fd, sync: true, maxLength: limits.logWaitingBytesMax })
  to.on('error', () => {})
  // A dropped line does not retry the buffered ones; an empty write does.
  to.on('drop', () => to.write(''))
  return to
}
