import { persistentStore } from '../../storage.js'
import { keyDigits } from '../format.js'
import { objectOfJson } from '../json.js'

/** The result of a complete check of a strand, stored in this browser. None of it is secret. */
export interface StoredCheck {
  /** The signed checkpoint at the end of the check. */
  checkpoint: string
  /** The number of its records, including genesis. */
  size: number
  /** The hash of the last record. */
  chainHead: string
  /** The current key after the last record, which has signed the checkpoint. */
  publicKey: string
  /** The trusted key of the check; empty if there was none. */
  trusted: string
  checkedAtMs: number
}

/** Loads the stored check of a strand; undefined if there is none or it is malformed. */
export function loadCheck(strand: string): StoredCheck | undefined {
  const text = persistentStore.read(`checked.${strand}`)
  return text === undefined ? undefined : parseCheck(text)
}

export function storeCheck(strand: string, check: StoredCheck | undefined): void {
  persistentStore.write(`checked.${strand}`, check && JSON.stringify(check))
}

/** Loads the key that the user trusts for a strand; empty if there is none. */
export function loadTrustedKey(strand: string): string {
  return persistentStore.read(`trusted.${strand}`) ?? ''
}

/** Stores the key that the user trusts for a strand; an empty one removes it. */
export function storeTrustedKey(strand: string, publicKey: string): void {
  persistentStore.write(`trusted.${strand}`, publicKey === '' ? undefined : publicKey)
}

/**
 * Compares the current key of a strand with the key that the user trusts for it. The stored check has shown
 * which key succeeded the trusted one.
 * @returns the fault if it is another key
 */
export function trustIn(strand: string, publicKey: string): { isKeyTrusted: boolean; fault?: string } {
  const trusted = loadTrustedKey(strand)
  if (trusted === '') return { isKeyTrusted: false }
  const kept = loadCheck(strand)
  if (publicKey === trusted || (kept?.trusted === trusted && kept.publicKey === publicKey))
    return { isKeyTrusted: true }
  const fault = `the current key, …${keyDigits(publicKey)}, is not the key that you trust. If the key was rotated, check the whole strand first`
  return { isKeyTrusted: false, fault }
}

/** Validates the stored text, because a user can change the storage. */
function parseCheck(text: string): StoredCheck | undefined {
  const found = { ...none, ...objectOfJson(text) }
  const { checkpoint, size, chainHead, publicKey, trusted, checkedAtMs } = found
  const isValid = checkpoint !== '' && Number.isSafeInteger(size) && size > 0 && Number.isFinite(checkedAtMs)
  return isValid ? { checkpoint, size, chainHead, publicKey, trusted, checkedAtMs } : undefined
}

const none: StoredCheck = {
  checkpoint: '',
  size: 0,
  chainHead: '',
  publicKey: '',
  trusted: '',
  checkedAtMs: 0,
}
