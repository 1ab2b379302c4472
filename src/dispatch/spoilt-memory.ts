/** What LMDB says of a write that failed, as lmdb 3.5.6 puts it together (mdb_page_flush in its mdb.c). */
const failedWrite = /Attempting to write page at position .*/

/** It does so in 100 bytes, the last of which ends the text. */
const textBytesMax = 99

/**
 * Whether LMDB has written past the end of its memory to tell of an error: some of the numbers in that text are of
 * nothing, and can be long. What else the memory of this process holds is not known any more then.
 */
export function hasSpoiltMemory({ message }: Error): boolean {
  const [text = ''] = failedWrite.exec(message) ?? []
  return text.length > textBytesMax
}
