/** The error of a shard thread whose segment number in the cluster's log another node has taken. */
export const fencedMessage = 'Another node owns the shard'

/** The class of an error is lost between threads, so its message is compared. */
export function isFenced({ message }: Error): boolean {
  return message === fencedMessage
}

const HELD_SUFFIX = ' owns the shard, and is alive'

/** The error of a shard thread that finds, before it opens anything, that another node owns the shard. */
export function heldMessage(node: string): string {
  return `The node ${node}${HELD_SUFFIX}`
}

export function isHeld({ message }: Error): boolean {
  return message.endsWith(HELD_SUFFIX)
}

/** The error of a shard thread whose log in the cluster's database lacks durable segments. */
export const lostLogMessage = 'The cluster’s log has lost what it had acknowledged'

/** The message may continue with what is missing. The node must not serve its state any more. */
export function hasLostLog({ message }: Error): boolean {
  return message.startsWith(lostLogMessage)
}
