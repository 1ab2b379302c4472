import { asBuffer } from '../../../src/base/bytes.js'
import { storedLevels, TreeHasher } from '../../../src/strand/merkle.js'
import { openEnvironment } from '../open-environment.js'
import { recordHashes, strandEnd } from '../tables/records.js'
import { CHILDREN, type StrandTrees } from '../tables/strand-trees.js'

/** Checks the stored subtrees of a strand while its records are read from the first one on. */
export class TreeCheck {
  readonly #trees: StrandTrees
  readonly #agentNo: number
  readonly #areAllStored: boolean
  /** The tree that grows at each stored level. */
  readonly #growing: TreeHasher[] = []

  constructor(trees: StrandTrees, agentNo: number) {
    this.#trees = trees
    this.#agentNo = agentNo
    this.#areAllStored = trees.isComplete
  }

  /** @returns what is wrong with a subtree that the record at `seq` completes */
  take(seq: number, hash: Uint8Array): string | undefined {
    let node = hash
    for (let step = 0; ; step++) {
      const tree = (this.#growing[step] ??= new TreeHasher(storedLevels))
      tree.append(node)
      if (tree.size < CHILDREN) return undefined
      node = tree.root()
      delete this.#growing[step]
      const level = (step + 1) * storedLevels
      const stored = this.#trees.find(this.#agentNo, level, Math.floor(seq / 2 ** level))
      if (stored === undefined ? step === 0 && this.#areAllStored : !asBuffer(node).equals(stored))
        return `The stored root of the 2^${level} records up to this one is missing or does not match them`
    }
  }
}

/**
 * Compares the stored subtrees of a store with its records, and reads these: what `TreeCheck` finds first, or
 * the first damaged record. Nothing may write to the store.
 */
export async function treeFault(path: string): Promise<string | undefined> {
  const environment = openEnvironment(path, 'read')
  try {
    for (const { key, value } of environment.names.getRange()) {
      const agentNo = key.readUInt32BE(0)
      const check = new TreeCheck(environment.trees, agentNo)
      const size = (strandEnd(environment, agentNo)?.record.seq ?? -1) + 1
      for (let start = 0; start < size; start += CHILDREN) {
        const end = Math.min(size, start + CHILDREN)
        for (const [at, hash] of recordHashes(environment, agentNo, { start, end }).entries()) {
          const fault = check.take(start + at, hash)
          if (fault !== undefined) return `agent ${value.toString()}, record ${start + at}: ${fault}`
        }
      }
    }
    return undefined
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return error.message
  } finally {
    await environment.root.close()
  }
}
