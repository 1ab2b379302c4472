import type { Config } from '../settings/config.js'
import { type Finding, fail, ok, warn } from './finding.js'
import { ownAddress, serverUrl } from './server-url.js'

/** Milliseconds that the server may take to answer. */
const ANSWER_MS = 3000

/**
 * Whether the server answers at the configured address, on `/healthz` and `/readyz` (docs/OPERATIONS.md, Health and
 * metrics).
 */
export async function examineServer(config: Config): Promise<{ alive: boolean; findings: Finding[] }> {
  const found = ownAddress(config)
  if (found === undefined && config.port === 0) {
    return {
      alive: false,
      findings: [warn('server', 'not asked: SERVICE_PORT=0 is a port that nobody knows')],
    }
  }
  const url = found ?? serverUrl(config)
  const health = await ask(`${url}/healthz`)
  if (typeof health === 'string') {
    return { alive: false, findings: [warn('server', `${url} does not answer: ${health}`)] }
  }
  if (health !== 200) {
    return { alive: false, findings: [fail('server', `${url}/healthz answers ${health}: another program?`)] }
  }
  const ready = await ask(`${url}/readyz`)
  const finding =
    ready === 200
      ? ok('server', `${url} is alive and ready`)
      : fail('server', `${url} is alive and not ready: /readyz answers ${ready}`)
  return { alive: true, findings: [finding] }
}

/** The status, or why there is none. */
async function ask(url: string): Promise<number | string> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS), redirect: 'manual' })
    await answer.body?.cancel()
    return answer.status
  } catch (error) {
    if (!(error instanceof Error)) return String(error)
    return error.cause instanceof Error ? error.cause.message : error.message
  }
}
