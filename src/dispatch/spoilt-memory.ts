/** The error text of LMDB for a failed write, as lmdb 3.5.6 makes it (mdb_page_flush in its mdb.c). */
const failedWrite = /Attempting to write page at position .*/

/** The text is made in a buffer of 100 bytes, the last of which is for NUL. */
const textBytesMax = 99

/**
 * Whether LMDB has written past the end of its memory while making an error text: some numbers in that text are
 * uninitialised, and can be long. The memory of this process may be corrupt after that.
 */
export function hasSpoiltMemory({ message }: Error): boolean {
  const [text = ''] = failedWrite.exec(message) ?? []
  return text.length > textBytesMax
}
