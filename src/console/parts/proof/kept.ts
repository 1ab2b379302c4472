import { lasting } from '../../storage.js'
import { objectOfJson } from '../json.js'

/** What this browser remembers of a strand that it has checked whole. None of it is secret. */
export interface KeptCheck {
  /** The signed checkpoint that the check ended at. */
  checkpoint: string
  /** Records that it counts, genesis too. */
  size: number
  /** Hash of the last of them. */
  chainHead: string
  /** The key in force after them, which has signed the checkpoint. */
  publicKey: string
  /** The key that the strand was checked with; empty where none was named. */
  trusted: string
  checkedAtMs: number
}

/** What was kept of a strand; undefined where there is nothing that can be read. */
export function keptCheck(strand: string): KeptCheck | undefined {
  const text = lasting.read(`checked.${strand}`)
  return text === undefined ? undefined : readKept(text)
}

/** Keeps a check, or forgets it. */
export function keepCheck(strand: string, check: KeptCheck | undefined): void {
  lasting.write(`checked.${strand}`, check && JSON.stringify(check))
}

/** The key that the reader of the page trusts for a strand; empty where none was named. */
export function trustedKey(strand: string): string {
  return lasting.read(`trusted.${strand}`) ?? ''
}

/** Remembers the key that is trusted for a strand. */
export function trustKey(strand: string, publicKey: string): void {
  lasting.write(`trusted.${strand}`, publicKey === '' ? undefined : publicKey)
}

/** The storage is the reader's, who may have changed it. */
function readKept(text: string): KeptCheck | undefined {
  const found = { ...none, ...objectOfJson(text) }
  const { checkpoint, size, chainHead, publicKey, trusted, checkedAtMs } = found
  const isWhole = checkpoint !== '' && Number.isSafeInteger(size) && size > 0 && Number.isFinite(checkedAtMs)
  return isWhole ? { checkpoint, size, chainHead, publicKey, trusted, checkedAtMs } : undefined
}

const none: KeptCheck = { checkpoint: '', size: 0, chainHead: '', publicKey: '', trusted: '', checkedAtMs: 0 }
