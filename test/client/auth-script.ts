import {
  type Answer,
  type ScriptedServer,
  answerJson,
  answerProblem,
  startScriptedServer,
} from './scripted-server.js'
import { ServiceClient, type ServiceClientOptions } from '../../src/client/index.js'

/** Clocks that a test sets, in milliseconds. */
export interface Clocks {
  wallMs: number
  monotonicMs: number
}

/**
 * A service that issues `token-1`, `token-2`… and accepts the newest token only; it refuses others as
 * expired.
 */
export interface AuthScript {
  server: ScriptedServer
  /** Number of the newest token. */
  newest: number
  /** Calls that were refused as expired. */
  refused: number
  /** Answers refreshes instead of issuing the next pair. */
  onRefresh: Answer | undefined
  /** Answers calls with the newest token instead of returning the head of an agent. */
  onCall: Answer
  /** Issues the next pair. */
  giveNext: Answer
  /** The authorization headers of the requests to a path, in order. */
  sentTo(path: string): (string | undefined)[]
  /** The number of refresh requests. */
  refreshes(): number
}

const tokens = (n: number) => ({
  token: `token-${n}`,
  refresh_token: `refresh-${n}`,
  token_type: 'Bearer',
  expires_in: 3_600,
})

/** Starts the service. */
export async function startAuthScript(): Promise<AuthScript> {
  const answer: Answer = (request, response) => {
    const path = request.url.split('?')[0]
    if (path === '/v1/auth/login') return script.giveNext(request, response)
    if (path === '/v1/auth/refresh') return (script.onRefresh ?? script.giveNext)(request, response)
    if (request.headers.authorization === `Bearer token-${script.newest}`) {
      return script.onCall(request, response)
    }
    script.refused += 1
    return answerProblem(401, 'token_expired')(request, response)
  }
  const server = await startScriptedServer(answer)
  const script: AuthScript = {
    server,
    newest: 0,
    refused: 0,
    onRefresh: undefined,
    onCall: answerJson({ seq: 1 }),
    giveNext: (request, response) => {
      script.newest += 1
      return answerJson(tokens(script.newest))(request, response)
    },
    sentTo: (path) =>
      server.received
        .filter(({ url }) => url.split('?')[0] === path)
        .map(({ headers }) => headers.authorization),
    refreshes: () => script.sentTo('/v1/auth/refresh').length,
  }
  return script
}

/** A client whose pauses end immediately and whose clocks the test sets. */
export function clientOf(script: AuthScript, options: Partial<ServiceClientOptions> = {}) {
  const clocks: Clocks = { wallMs: 1_700_000_000_000, monotonicMs: 5_000 }
  const timing = {
    pause: async (delayMs: number) => {
      clocks.wallMs += delayMs
      clocks.monotonicMs += delayMs
    },
    random: () => 0.5,
    nowMs: () => clocks.wallMs,
    monotonicMs: () => clocks.monotonicMs,
  }
  return { client: new ServiceClient({ url: script.server.url, timing, ...options }), clocks }
}

/** A promise and the function that resolves it. */
export function deferred<T = void>() {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((settle) => (resolve = settle))
  return { promise, resolve }
}

export const alice = { email: 'alice@example.org', password: 'correct horse battery' }
