/** An entry of a linked list, so that a long queue does not retain the items that were taken. */
interface QueueEntry<T> {
  item: T
  next: QueueEntry<T> | undefined
}

/** The waiting items of one caller. */
interface Queue<T> {
  first: QueueEntry<T>
  last: QueueEntry<T>
}

/**
 * Waiting items, taken round-robin by caller and in order of arrival for each caller. A caller therefore
 * waits for at most one item of every other caller, however many they have.
 */
export class CallerTurns<T> {
  /** The next caller comes first. */
  readonly #queues = new Map<string, Queue<T>>()
  #length = 0

  /** The number of waiting items. */
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

  /** The next item, which stays in the queue; undefined if the queue is empty. */
  peek(): T | undefined {
    for (const { first } of this.#queues.values()) return first.item
    return undefined
  }

  /** The waiting items of one caller. */
  *of(caller: string): Generator<T> {
    for (let entry = this.#queues.get(caller)?.first; entry !== undefined; entry = entry.next)
      yield entry.item
  }

  /**
   * Takes the next item; undefined if there is none.
   * @param mayGo whether an item can be taken now; a caller whose first item cannot be taken keeps its turn
   */
  take(mayGo?: (item: T) => boolean): T | undefined {
    for (const [caller, queue] of this.#queues) {
      const { item, next } = queue.first
      if (mayGo?.(item) === false) continue
      this.#length -= 1
      if (next !== undefined) queue.first = next
      if (next === undefined || this.#queues.size > 1) this.#queues.delete(caller)
      // The caller moves to the end.
      if (next !== undefined) this.#queues.set(caller, queue)
      return item
    }
    return undefined
  }

  /** Ends the turn of the next caller without taking its item. */
  pass(): void {
    for (const [caller, queue] of this.#queues) {
      this.#queues.delete(caller)
      this.#queues.set(caller, queue)
      return
    }
  }

  /** Removes items wherever they are in the queue. @returns the removed ones */
  remove(isRemoved: (item: T) => boolean): T[] {
    const before = [...this.#queues.keys()].map((caller) => [caller, [...this.of(caller)]] as const)
    const removed: T[] = []
    this.#queues.clear()
    this.#length = 0
    for (const [caller, items] of before) {
      for (const item of items)
        if (isRemoved(item)) removed.push(item)
        else this.push(caller, item)
    }
    return removed
  }

  /** Takes all items. */
  takeAll(): T[] {
    const all: T[] = []
    for (let item = this.take(); item !== undefined; item = this.take()) all.push(item)
    return all
  }
}
