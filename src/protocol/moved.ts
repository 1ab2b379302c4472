import type { MessagePort } from 'node:worker_threads'

/** An object that a message can transfer to the other thread. */
export type Transferred = ArrayBuffer | MessagePort

/** The reply to a call between threads, of which the listed objects are transferred. */
export class Moved<Reply> {
  readonly reply: Reply
  readonly transfer: readonly Transferred[]

  constructor(reply: Reply, transfer: readonly Transferred[]) {
    this.reply = reply
    this.transfer = transfer
  }
}
