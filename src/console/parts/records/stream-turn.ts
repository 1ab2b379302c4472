import { here } from '../../storage.js'

/**
 * The streams that all tabs of a browser have open together. By HTTP/1.1, a browser opens six connections to a
 * server for all its tabs; if streams take them all, no page loads and no request of any tab is sent.
 */
const STREAMS_OF_BROWSER_MAX = 3

/** Why a stream has to close: its page is hidden, or newer streams of the browser take its place. */
export type TurnEnd = 'hidden' | 'elsewhere'

/** The functions that a turn calls. */
interface TurnOwner {
  end(why: TurnEnd): void
  /** The page is visible again, or has the focus again. */
  comeBack(): void
}

/**
 * Decides when a tab has a stream: while its page is visible, and while fewer than `STREAMS_OF_BROWSER_MAX`
 * streams were opened after it. Tabs report their streams to one another over a channel of this browser and
 * origin.
 */
export class StreamTurn {
  readonly #owner: TurnOwner
  readonly #channel = openChannel()
  readonly #id = crypto.getRandomValues(new Uint32Array(4)).join('-')
  readonly #ended = new AbortController()
  /** The streams that were opened after this one; undefined while it is closed. */
  #newer: Set<string> | undefined

  constructor(owner: TurnOwner) {
    this.#owner = owner
    const { signal } = this.#ended
    this.#channel?.addEventListener('message', ({ data }: MessageEvent<unknown>) => this.#onMessage(data), {
      signal,
    })
    document.addEventListener(
      'visibilitychange',
      () => (isHidden() ? this.#leave('hidden') : owner.comeBack()),
      {
        signal,
      },
    )
    globalThis.addEventListener('focus', () => owner.comeBack(), { signal })
    globalThis.addEventListener('pagehide', () => this.#leave('hidden'), { signal })
  }

  /** Takes a turn: the stream is about to be opened. @returns false while the page is hidden */
  take(): boolean {
    if (isHidden()) return false
    this.#newer = new Set()
    this.#channel?.postMessage({ opened: this.#id })
    return true
  }

  release(): void {
    if (this.#newer === undefined) return
    this.#newer = undefined
    this.#channel?.postMessage({ closed: this.#id })
  }

  /** Ends the turn permanently. */
  close(): void {
    this.release()
    this.#ended.abort()
    this.#channel?.close()
  }

  #onMessage(data: unknown): void {
    if (this.#newer === undefined || typeof data !== 'object' || data === null) return
    if ('closed' in data) this.#newer.delete(String(data.closed))
    else if ('opened' in data) this.#newer.add(String(data.opened))
    if (this.#newer.size >= STREAMS_OF_BROWSER_MAX) this.#leave('elsewhere')
  }

  #leave(why: TurnEnd): void {
    if (this.#newer === undefined) return
    this.#owner.end(why)
    this.release()
  }
}

function isHidden(): boolean {
  return document.visibilityState === 'hidden'
}

/** @returns undefined if the browser forbids it, as it can forbid storage */
function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(here('strandfast streams'))
  } catch {
    return undefined
  }
}
