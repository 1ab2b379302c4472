/** How the thread of a shard ends whose place in the cluster's log another node has taken. */
export const fencedMessage = 'Another node owns the shard'

/** Whether a thread ended so. The class of an error is lost between threads. */
export function isFenced({ message }: Error): boolean {
  return message === fencedMessage
}

const HELD = ' owns the shard, and is alive'

/** How the thread of a shard ends that another node owns, before it has opened anything. */
export function heldMessage(node: string): string {
  return `The node ${node}${HELD}`
}

/** Whether a thread ended so. */
export function isHeld({ message }: Error): boolean {
  return message.endsWith(HELD)
}

/** How the thread of a shard ends whose log in the cluster's database lacks something that was durable. */
export const lostLogMessage = 'The cluster’s log has lost what it had acknowledged'

/** Whether a thread ended so: what its node has told is true no more. What is missing may be said behind. */
export function hasLostLog({ message }: Error): boolean {
  return message.startsWith(lostLogMessage)
}
