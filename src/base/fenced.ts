/** How the thread of a shard ends whose place in the cluster's log another node has taken. */
export const fencedMessage = 'Another node owns the shard'

/** Whether a thread ended so. The class of an error is lost between threads. */
export function isFenced({ message }: Error): boolean {
  return message === fencedMessage
}
