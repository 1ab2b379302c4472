import type { Refusal } from '../base/errors.js'

/** Limits parallel logins, in this thread or through another thread or node. */
export interface LoginPermits {
  /**
   * Waits for the turn of an attempt.
   * @param key identifies the namespace and the e-mail
   * @returns 503 overloaded when too many attempts already wait
   */
  enter(key: string): Promise<LoginPermit | Refusal>
}

/** The turn of one attempt. */
export interface LoginPermit {
  /**
   * Whether the password may be compared. If not, waits until another attempt has ended: look up the failures
   * again.
   * @param failures looked up after the attempt has entered, and after an earlier call has returned false
   */
  allows(failures: number): Promise<boolean>
  /** Call it at the end of the attempt, after a failure was counted. */
  end(): void
}

/** The calls by which a front uses the permits of another thread or node. */
export interface LoginCalls {
  loginEnter: { request: string; reply: number | Refusal }
  loginAllows: { request: { attempt: number; failures: number }; reply: boolean }
  loginEnd: { request: number; reply: void }
}

/** The permits of another thread or node. */
export function remotePermits(
  call: <Name extends keyof LoginCalls>(
    name: Name,
    request: LoginCalls[Name]['request'],
  ) => Promise<LoginCalls[Name]['reply']>,
): LoginPermits {
  return {
    async enter(key) {
      const attempt = await call('loginEnter', key)
      if (typeof attempt !== 'number') return attempt
      return {
        allows: (failures) => call('loginAllows', { attempt, failures }),
        // If the call fails, the other end ends the attempt because this one has ended.
        end: () => void call('loginEnd', attempt).catch(() => undefined),
      }
    },
  }
}

/**
 * Answers these calls for one front.
 * @param gone aborts when the front has ended; its attempts end then
 */
export function loginCalls(permits: LoginPermits, gone: AbortSignal | undefined) {
  const open = new Map<number, LoginPermit>()
  let last = 0
  const end = (attempt: number) => {
    open.get(attempt)?.end()
    open.delete(attempt)
  }
  const endAll = () => [...open.keys()].forEach(end)
  gone?.addEventListener('abort', endAll)
  return {
    async loginEnter(key: string): Promise<number | Refusal> {
      const permit = await permits.enter(key)
      if ('code' in permit) return permit
      open.set(++last, permit)
      if (gone?.aborted === true) endAll()
      return last
    },
    loginAllows({ attempt, failures }: LoginCalls['loginAllows']['request']): Promise<boolean> {
      const permit = open.get(attempt)
      if (permit === undefined) throw new Error(`Login attempt ${attempt} has ended`)
      return permit.allows(failures)
    },
    loginEnd: end,
  }
}
