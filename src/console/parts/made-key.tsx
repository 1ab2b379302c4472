import { useState } from 'preact/hooks'
import type { ApiKeyMade } from '../../client/index.js'
import { Dialog } from './dialog.js'
import { CopyButton } from './texts.js'
import { proposalLink } from '../route.js'

/** A key that was just made: shown this once, so the dialog closes by its button alone. */
export function MadeKey({ made, close }: { made: ApiKeyMade; close: () => void }) {
  const [isHeld, setHeld] = useState(false)
  return (
    <Dialog title="The new key" class="dialog" close={() => setHeld(true)}>
      <h2>The key “{made.name}”</h2>
      {'proposal_id' in made && (
        <p class="notice warn">
          <strong>It does not work yet.</strong> It may decide about proposals, so somebody else has to
          approve it first: a key with <code>admin:*</code> that comes from another key than yours.{' '}
          <a href={proposalLink(made.proposal_id)}>Look at its proposal</a>
        </p>
      )}
      <p>Keep it now, in a password manager. The server keeps only its hash, and cannot show it again.</p>
      <div class="shown-once">
        <label class="field">
          Key
          <input
            class="long-input"
            readOnly
            value={made.key}
            onFocus={(event) => event.currentTarget.select()}
          />
        </label>
        <CopyButton text={made.key} name="the key" />
      </div>
      <p class="problem" role="status">
        {isHeld ? 'It is not shown again once this is closed' : ''}
      </p>
      <div class="buttons">
        <button type="button" class="primary" onClick={close}>
          I have kept it
        </button>
      </div>
    </Dialog>
  )
}
