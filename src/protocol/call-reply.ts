import type { MessagePort } from 'node:worker_threads'

/** An object that a message can transfer to the other thread. */
export type Transferred = ArrayBuffer | MessagePort

/** How a reply is sent. */
interface ReplyOptions {
  /** The objects that it transfers. */
  transfer?: readonly Transferred[]
  /** The id of the principal that it is for, by which a link to another node bounds and schedules it. */
  caller?: string | undefined
}

/** The reply to a call, with how it is sent. */
export class CallReply<Reply> {
  readonly reply: Reply
  readonly transfer: readonly Transferred[]
  readonly caller: string | undefined

  constructor(reply: Reply, { transfer = [], caller }: ReplyOptions = {}) {
    this.reply = reply
    this.transfer = transfer
    this.caller = caller
  }
}
