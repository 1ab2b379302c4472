import type { Environment } from '../environment.js'

/** The content of the last audit record of a type that is written only when it changes; undefined before the first. */
export function lastTold({ meta }: Environment, type: string): string | undefined {
  return meta.get(keyOf(type))?.toString()
}

/** Keeps it, within the caller's transaction. */
export function putLastTold({ meta }: Environment, told: ReadonlyMap<string, string>): void {
  for (const [type, body] of told) meta.put(keyOf(type), Buffer.from(body))
}

/** All of it: for a move to other shards. */
export function allLastTold({ meta }: Environment): Map<string, string> {
  const told = new Map<string, string>()
  for (const { key, value } of meta.getRange({
    start: Buffer.from(PREFIX),
    end: Buffer.from(`${PREFIX}\u{7f}`),
  })) {
    told.set(key.toString().slice(PREFIX.length), value.toString())
  }
  return told
}

const PREFIX = 'last-told '

function keyOf(type: string): Buffer {
  return Buffer.from(PREFIX + type)
}
