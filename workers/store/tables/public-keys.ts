import type { Environment } from '../environment.js'
import { byHashOfKey } from '../row-move.js'
import type { TableSpec } from '../table-spec.js'

/** Names of agents by their public keys. */
export const publicKeys: TableSpec<Environment, Map<string, string>> = {
  open: (environment) => environment,
  moves: { publicKeys: byHashOfKey },
  changes: () => new Map(),
  rows: ({ size }) => size,
  put(environment, changes) {
    for (const [publicKey, name] of changes)
      environment.publicKeys.put(Buffer.from(publicKey, 'hex'), Buffer.from(name))
  },
}

/** The agent that claimed a public key. */
export function publicKeyOwner(environment: Environment, publicKey: string): string | undefined {
  return environment.publicKeys.find(Buffer.from(publicKey, 'hex'))?.toString()
}
