/** A list, so that a long queue does not keep what was taken from it. */
interface QueueEntry<T> {
  item: T
  next: QueueEntry<T> | undefined
}

/** What waits of one caller. */
interface Queue<T> {
  first: QueueEntry<T>
  last: QueueEntry<T>
}

/**
 * Commands that wait, by their callers: one of each caller is taken in turn, those of one caller in the order in which
 * they came. So a caller waits for one command of each other caller, however many these have sent.
 */
export class CallerTurns<T> {
  /** The caller whose turn is next comes first. */
  readonly #queues = new Map<string, Queue<T>>()
  #length = 0

  /** How many wait. */
  get length(): number {
    return this.#length
  }

  /** @param caller empty for the server itself */
  push(caller: string, item: T): void {
    const waiting: QueueEntry<T> = { item, next: undefined }
    const queue = this.#queues.get(caller)
    if (queue === undefined) this.#queues.set(caller, { first: waiting, last: waiting })
    else queue.last = queue.last.next = waiting
    this.#length += 1
  }

  /** The next one, which stays; undefined when none waits. */
  peek(): T | undefined {
    for (const { first } of this.#queues.values()) return first.item
    return undefined
  }

  /** Takes the next one; undefined when none waits. */
  take(): T | undefined {
    for (const [caller, queue] of this.#queues) {
      const { item, next } = queue.first
      this.#length -= 1
      if (next !== undefined) queue.first = next
      if (next === undefined || this.#queues.size > 1) this.#queues.delete(caller)
      // To the end: others have their turn first.
      if (next !== undefined) this.#queues.set(caller, queue)
      return item
    }
    return undefined
  }

  /** Takes all that wait. */
  takeAll(): T[] {
    const all: T[] = []
    for (let item = this.take(); item !== undefined; item = this.take()) all.push(item)
    return all
  }
}
