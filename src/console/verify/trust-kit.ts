import type { FileTrust } from './check-file.js'

/** A kit is three lines of hex and two notes. */
const BYTES_MAX = 100_000

/** What the first steps save for whoever does not trust the server (`#/start`). */
export interface TrustKit {
  agent: string
  trust: FileTrust
}

/** Reads such a file. @returns undefined where it is something else */
export async function readTrustKit(file: File): Promise<TrustKit | undefined> {
  if (file.size > BYTES_MAX) return undefined
  const read = parsed(await file.text())
  if (typeof read !== 'object' || read === null) return undefined
  const [agent, strand, publicKey, kept] = ['agent', 'strand', 'public_key', 'checkpoint'].map((name) => {
    const value: unknown = Reflect.get(read, name)
    return typeof value === 'string' ? value : undefined
  })
  if (agent === undefined || strand === undefined || publicKey === undefined || kept === undefined)
    return undefined
  return { agent, trust: { strand, publicKey, kept } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
