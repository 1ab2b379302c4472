import type { VerifiedExport } from '../../../client/index.js'
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
  return (
    <dl class="facts">
      <dt>Signatures</dt>
      <dd>
        {countText(found.signaturesChecked)}
        {found.sealed > 0 && `, which also cover ${counted(found.sealed, 'sealed record')}`}
      </dd>
      <dt>Erased bodies</dt>
      <dd>{countText(found.erased)}</dd>
      {found.withheld > 0 && (
        <>
          <dt>Withheld bodies</dt>
          <dd>{countText(found.withheld)}</dd>
        </>
      )}
      <dt>Keys</dt>
      <dd>{found.keys === 1 ? 'One, never changed' : `${found.keys}, each named by the one before`}</dd>
      <dt>Key in force</dt>
      <dd>
        <Key hex={found.publicKey} name="the key in force" />
      </dd>
      <dt>Head</dt>
      <dd>
        <Hash hex={found.chainHead} name="the head" />
      </dd>
      <dt>Strand</dt>
      <dd>
        <Hash hex={found.strand} name="the strand" />
      </dd>
    </dl>
  )
}
