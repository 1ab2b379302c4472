/** The part of autocannon that the bench uses. It brings no types. */
declare module 'autocannon' {
  namespace autocannon {
    interface LoadOptions {
      url: string
      connections: number
      /** Seconds. */
      duration: number
      /** Seconds that an answer may take. */
      timeout: number
      requests: { method: 'GET' | 'POST'; path: string; headers: Record<string, string>; body?: string }[]
    }
    interface LoadSummary {
      requests: { total: number }
      /** Seconds. */
      duration: number
      /** Answers of another status than 2xx. */
      non2xx: number
      /** Timeouts too. */
      errors: number
      timeouts: number
    }
    interface RunningLoad {
      on(
        event: 'response',
        listener: (...response: [client: unknown, status: number, bytes: number, elapsedMs: number]) => void,
      ): void
    }
  }
  function autocannon(
    options: autocannon.LoadOptions,
    done: (error: Error | null, summary: autocannon.LoadSummary) => void,
  ): autocannon.RunningLoad
  export default autocannon
}
