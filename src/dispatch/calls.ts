import type { MessagePort } from 'node:worker_threads'
import { RefusedError, type Refusal } from '../base/errors.js'

/** The calls that one thread answers to another by their names: what each is given, and what it answers. */
type CallTable<Table> = { [Name in keyof Table]: { ask: unknown; found: unknown } }

/** Answers one kind of call. A method, so that handlers of all kinds fit into one table. */
interface Handler<Ask, Found> {
  handle(ask: Ask): Found | Promise<Found>
}

/** Answers each kind of call; throws RefusedError to refuse one. */
export type Handlers<Table extends CallTable<Table>> = {
  [Name in keyof Table]: Handler<Table[Name]['ask'], Table[Name]['found']>['handle']
}

type AnyHandler = Handler<unknown, unknown>['handle']

/** What crosses between the two threads. */
type CallMessage =
  | { kind: 'call'; id: number; name: string; ask: unknown }
  | { kind: 'found'; id: number; found: unknown }
  | { kind: 'failed'; id: number; message: string; refusal: Refusal | undefined }

/** A call that is not answered yet. */
interface PendingCall {
  found(found: unknown): void
  failed(error: Error): void
}

/** Sends a message, and hands over what is named. */
type Post = (message: unknown, transfer: readonly Transferred[]) => void

/** What a message can hand over to the other thread. */
export type Transferred = ArrayBuffer | MessagePort

/**
 * Calls between two threads of this program, in both directions, over one port. Both ends are compiled together, so what
 * crosses is not checked, as frames are not.
 * @typeParam Own the calls that this thread answers
 * @typeParam Other the calls that the other one answers
 */
export class Calls<Own extends CallTable<Own>, Other extends CallTable<Other>> {
  readonly #post: Post
  readonly #handlers: ReadonlyMap<string, AnyHandler>
  readonly #waiting = new Map<number, PendingCall>()
  #nextId = 0
  #ended: Error | undefined

  constructor(post: Post, handlers: Handlers<Own>) {
    this.#post = post
    this.#handlers = new Map(Object.entries<AnyHandler>(handlers))
  }

  /** @throws RefusedError when it is refused, Error when it fails or the other thread has ended */
  readonly call = <Name extends keyof Other & string>(
    name: Name,
    ask: Other[Name]['ask'],
    transfer: readonly Transferred[] = [],
  ): Promise<Other[Name]['found']> =>
    new Promise<Other[Name]['found']>((found, failed) => {
      if (this.#ended !== undefined) {
        failed(this.#ended)
        return
      }
      const id = this.#nextId++
      this.#waiting.set(id, { found, failed })
      this.#send({ kind: 'call', id, name, ask }, transfer)
    })

  /** Takes a message of the other thread. */
  take(message: unknown): void {
    if (!isCallMessage(message)) throw new Error('A thread sent what is no call')
    if (message.kind === 'call') {
      void this.#answer(message)
      return
    }
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if (message.kind === 'found') waiting?.found(message.found)
    else if (message.refusal !== undefined) waiting?.failed(new RefusedError(message.refusal))
    else waiting?.failed(new Error(message.message))
  }

  /** The other thread has ended: its calls are not answered any more. */
  end(error: Error): void {
    this.#ended = error
    for (const { failed } of this.#waiting.values()) failed(error)
    this.#waiting.clear()
  }

  async #answer({ id, name, ask }: Extract<CallMessage, { kind: 'call' }>): Promise<void> {
    try {
      const found = await this.#handlers.get(name)?.(ask)
      this.#send({ kind: 'found', id, found }, [])
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
      const refusal = error instanceof RefusedError ? error.refusal : undefined
      this.#send({ kind: 'failed', id, message, refusal }, [])
    }
  }

  #send(message: CallMessage, transfer: readonly Transferred[]): void {
    this.#post(message, transfer)
  }
}

function isCallMessage(message: unknown): message is CallMessage {
  return typeof message === 'object' && message !== null && 'kind' in message && 'id' in message
}
