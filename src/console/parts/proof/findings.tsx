import type { VerifiedExport } from '../../../client/index.js'
import { countText, counted, recordsText } from '../format.js'
import { Facts, Hash, Key, Time } from '../texts.js'
import type { StoredCheck } from './stored-check.js'

/** The counts of a check, with what it proves and what it does not prove. */
export function Findings(props: {
  found: VerifiedExport
  isKeyTrusted: boolean
  since: StoredCheck | undefined
}) {
  const { found, isKeyTrusted, since } = props
  const { unexplained, partial, imported } = found
  return (
    <>
      <Counts found={found} />
      <h2>What this proves</h2>
      <ul>
        <li>No record was changed, removed, inserted or moved without the agent’s key.</li>
        {since !== undefined && (
          <li>
            The strand still begins with the {recordsText(since.size - 1)} checked in this browser on{' '}
            <Time ms={since.checkedAtMs} />.
          </li>
        )}
        {isKeyTrusted && (
          <li>It is signed with the key that you trust, or with a successor that this key signed.</li>
        )}
      </ul>
      <h2>What it does not prove</h2>
      <ul>
        {!isKeyTrusted && (
          <li>
            The owner of the strand: you gave no key that you know from another source, and anyone can create
            such a strand.
          </li>
        )}
        {partial && since === undefined && (
          <li>The records before record {found.firstSeq}: they are not in this file.</li>
        )}
        {imported > 0 && (
          <li>
            Who wrote the first {recordsText(imported)}: they were imported from another server. What they say
            about decisions was decided there.
          </li>
        )}
        {unexplained !== undefined && (
          <li>
            Why {unexplained.count === 1 ? 'a body' : `${countText(unexplained.count)} bodies`} from record{' '}
            {unexplained.firstSeq} on {unexplained.count === 1 ? 'is' : 'are'} missing: there is no record of
            the erasure here.
          </li>
        )}
        <li>
          That this page is honest: it was loaded from a server as well. If you do not trust that server,
          verify an export elsewhere, for example with <code>strandfast verify</code>.
        </li>
        <li>
          That there are no newer records, and that the times are correct: the server’s clock sets them.
        </li>
      </ul>
    </>
  )
}

function Counts({ found }: { found: VerifiedExport }) {
  const { keys, sealed, withheld } = found
  return (
    <Facts
      facts={{
        Signatures: `${countText(found.signaturesChecked)}${
          sealed > 0 ? `, which also cover ${counted(sealed, 'sealed record')}` : ''
        }`,
        'Erased bodies': countText(found.erased),
        'Withheld bodies': withheld > 0 ? countText(withheld) : undefined,
        Keys: keys === 1 ? 'One, never changed' : `${keys}, each signed by its predecessor`,
        'Current key': <Key hex={found.publicKey} name="the current key" />,
        Head: <Hash hex={found.chainHead} name="the head" />,
        Strand: <Hash hex={found.strand} name="the strand" />,
      }}
    />
  )
}
