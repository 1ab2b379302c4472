import { RefusedError, type Refusal } from '../base/errors.js'
import { CallReply, type Transferred } from '../protocol/call-reply.js'

/** The calls that one thread makes to another, by name, each with its request and its reply. */
type CallTable<Table> = { [Name in keyof Table]: { request: unknown; reply: unknown } }

/** Handles one kind of call. It is a method so that handlers of all kinds fit into one table. */
interface Handler<Request, Reply> {
  handle(request: Request): Reply | CallReply<Reply> | Promise<Reply | CallReply<Reply>>
}

/** A handler for each kind of call. A handler throws RefusedError to refuse a call. */
export type Handlers<Table extends CallTable<Table>> = {
  [Name in keyof Table]: Handler<Table[Name]['request'], Table[Name]['reply']>['handle']
}

type AnyHandler = Handler<unknown, unknown>['handle']

type CallMessage =
  | { kind: 'call'; id: number; name: string; request: unknown }
  | { kind: 'reply'; id: number; reply: unknown }
  | { kind: 'failed'; id: number; message: string; refusal: Refusal | undefined }

interface PendingCall {
  resolve(reply: unknown): void
  reject(error: Error): void
}

/**
 * Sends a message and transfers the listed objects. For a reply to a caller, it may throw RefusedError
 * without sending it.
 */
type Post = (message: unknown, transfer: readonly Transferred[], caller?: string) => void

/**
 * Calls between two threads of this program, in both directions, over one port. Both ends are compiled
 * together, so messages are not checked.
 * @typeParam Own the calls that this thread handles
 * @typeParam Other the calls that the other thread handles
 */
export class Calls<Own extends CallTable<Own>, Other extends CallTable<Other>> {
  readonly #post: Post
  readonly #handlers: ReadonlyMap<string, AnyHandler>
  readonly #pending = new Map<number, PendingCall>()
  #nextId = 0
  #ended: Error | undefined

  constructor(post: Post, handlers: Handlers<Own>) {
    this.#post = post
    this.#handlers = new Map(Object.entries<AnyHandler>(handlers))
  }

  /** @throws RefusedError for a refusal, Error when the call fails or the other thread has ended */
  readonly call = <Name extends keyof Other & string>(
    name: Name,
    request: Other[Name]['request'],
    transfer: readonly Transferred[] = [],
  ): Promise<Other[Name]['reply']> =>
    new Promise<Other[Name]['reply']>((resolve, reject) => {
      if (this.#ended !== undefined) {
        reject(this.#ended)
        return
      }
      const id = this.#nextId++
      this.#pending.set(id, { resolve, reject })
      this.#send({ kind: 'call', id, name, request }, transfer)
    })

  /** Handles a message of the other thread. */
  receive(message: unknown): void {
    if (!isCallMessage(message)) throw new Error('Received a message that is not a call from another thread')
    if (message.kind === 'call') {
      void this.#answer(message)
      return
    }
    const pending = this.#pending.get(message.id)
    this.#pending.delete(message.id)
    if (message.kind === 'reply') pending?.resolve(message.reply)
    else if (message.refusal !== undefined) pending?.reject(new RefusedError(message.refusal))
    else pending?.reject(new Error(message.message))
  }

  /** Rejects all pending and later calls, because the other thread has ended. */
  end(error: Error): void {
    this.#ended = error
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }

  async #answer({ id, name, request }: Extract<CallMessage, { kind: 'call' }>): Promise<void> {
    try {
      const found = await this.#handlers.get(name)?.(request)
      const { reply, transfer, caller } = found instanceof CallReply ? found : new CallReply(found)
      this.#send({ kind: 'reply', id, reply }, transfer, caller)
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
      const refusal = error instanceof RefusedError ? error.refusal : undefined
      this.#send({ kind: 'failed', id, message, refusal }, [])
    }
  }

  #send(message: CallMessage, transfer: readonly Transferred[], caller?: string): void {
    this.#post(message, transfer, caller)
  }
}

function isCallMessage(message: unknown): message is CallMessage {
  return typeof message === 'object' && message !== null && 'kind' in message && 'id' in message
}
