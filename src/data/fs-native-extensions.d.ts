/** The part of fs-native-extensions that locks use: open-file-description locks, flock on macOS, LockFileEx on Windows. */
declare module 'fs-native-extensions' {
  const extensions: {
    /** @returns whether the exclusive lock on the whole file is now held by this descriptor */
    tryLock(fd: number): boolean
    unlock(fd: number): void
  }
  export default extensions
}
