/* Types of the packages that have none, for the parts that we use. */

declare module 'sodium-native' {
  interface Sodium {
    readonly crypto_sign_SEEDBYTES: number
    readonly crypto_sign_PUBLICKEYBYTES: number
    readonly crypto_sign_SECRETKEYBYTES: number
    readonly crypto_sign_BYTES: number
    crypto_sign_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Buffer): void
    crypto_sign_detached(signature: Buffer, message: Buffer, secretKey: Buffer): void
    crypto_sign_verify_detached(signature: Buffer, message: Buffer, publicKey: Buffer): boolean
  }
  const sodium: Sodium
  export = sodium
}

// The package is CommonJS but describes itself as an ES module, which nodenext reads as { default }.
declare module 'canonicalize' {
  function canonicalize(value: unknown): string | undefined
  export = canonicalize
}

/** File locks: open-file-description locks on Linux, flock on macOS, LockFileEx on Windows. */
declare module 'fs-native-extensions' {
  const extensions: {
    /** @returns whether the exclusive lock on the whole file is now held by this descriptor */
    tryLock(fd: number): boolean
    unlock(fd: number): void
  }
  export default extensions
}
