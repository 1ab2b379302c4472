import type { VerifiedExport } from '../../../client/index.js'
import { Facts } from '../facts.js'
import { countText, counted } from '../format.js'
import { Hash, Key, Time } from '../texts.js'
import type { KeptCheck } from './kept.js'

/** What a check counted, and in words what it proves and what it does not. */
export function Findings(props: {
  found: VerifiedExport
  isKeyTrusted: boolean
  since: KeptCheck | undefined
}) {
  const { found, isKeyTrusted, since } = props
  const { unexplained, partial } = found
  return (
    <>
      <Counts found={found} />
      <h2>What this proves</h2>
      <ul>
        <li>Nobody without the agent’s key has changed, removed, inserted or moved a record.</li>
        {since !== undefined && (
          <li>
            The strand still begins with the {counted(since.size, 'record')} that were checked here{' '}
            <Time ms={since.checkedAtMs} />.
          </li>
        )}
        {isKeyTrusted && <li>It is signed by the key that you trust, or by one that this key has named.</li>}
      </ul>
      <h2>What it does not prove</h2>
      <ul>
        {!isKeyTrusted && (
          <li>
            Whose strand it is: no key was given that you know from elsewhere. Anybody can make such a strand.
          </li>
        )}
        {partial && since === undefined && (
          <li>What came before record {found.firstSeq}: it is not in this file.</li>
        )}
        {unexplained !== undefined && (
          <li>
            Why {unexplained.count === 1 ? 'the body' : `${countText(unexplained.count)} bodies`} from record{' '}
            {unexplained.firstSeq} on {unexplained.count === 1 ? 'is' : 'are'} gone: no record here tells of
            the erasure.
          </li>
        )}
        <li>
          That this page is honest: it came from a server too. If that is the one you doubt, check an export
          elsewhere, as with <code>strandfast verify</code>.
        </li>
        <li>That nothing newer exists, and that the times are right: they are the server’s own.</li>
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
        Keys: keys === 1 ? 'One, never changed' : `${keys}, each named by the one before`,
        'Key in force': <Key hex={found.publicKey} name="the key in force" />,
        Head: <Hash hex={found.chainHead} name="the head" />,
        Strand: <Hash hex={found.strand} name="the strand" />,
      }}
    />
  )
}
