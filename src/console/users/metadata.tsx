import { useState } from 'preact/hooks'
import type { ServiceClient, User } from '../../client/index.js'
import { explain } from '../parts/explain.js'
import { countText } from '../parts/format.js'
import { objectOfJson } from '../parts/json.js'
import { Form } from '../parts/field.js'

/** The server's default limit for both objects together (SERVICE_AUTH_METADATA_MAX_BYTES). */
const BYTES_MAX = 4_096

/** The two metadata objects in the user's tokens: administrators edit the first one, the user the second. */
export function Metadata(props: { service: ServiceClient; user: User; reload: () => void }) {
  const { service, user, reload } = props
  return (
    <section class="metadata">
      <h2>Metadata</h2>
      <p class="muted">
        Both objects can be read in every token of this user. A change appears in tokens issued after it.
      </p>
      <div class="metadata-pair">
        <AppMetadata service={service} user={user} reload={reload} />
        <div>
          <h3>user_metadata</h3>
          <pre class="raw" tabIndex={0}>
            {JSON.stringify(user.user_metadata, null, 2)}
          </pre>
          <p class="muted">Only the user can change this object.</p>
        </div>
      </div>
    </section>
  )
}

type SavingState = { kind: 'idle' | 'busy' | 'saved' } | { kind: 'failed'; message: string }

function AppMetadata({ service, user, reload }: { service: ServiceClient; user: User; reload: () => void }) {
  const [text, setText] = useState(() => JSON.stringify(user.app_metadata, null, 2))
  const [clears, setClears] = useState(false)
  const [state, setState] = useState<SavingState>({ kind: 'idle' })
  const value = objectOfJson(text)
  const other = clears ? {} : user.user_metadata
  const left = value === undefined ? undefined : BYTES_MAX - bytesOf(value) - bytesOf(other)
  const save = async (): Promise<void> => {
    if (value === undefined) return
    setState({ kind: 'busy' })
    try {
      await service.auth.users.setAppMetadata(user.email, value, { clearUserMetadata: clears })
      setState({ kind: 'saved' })
      reload()
    } catch (error) {
      setState({ kind: 'failed', message: explain(error) })
    }
  }
  return (
    <Form submit={() => save()}>
      <h3>
        <label for="app-metadata">app_metadata</label>
      </h3>
      <textarea
        id="app-metadata"
        rows={8}
        spellcheck={false}
        value={text}
        aria-describedby="app-metadata-left"
        aria-invalid={value === undefined}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setState({ kind: 'idle' })
        }}
      />
      <p id="app-metadata-left" class={left === undefined || left < 0 ? 'problem' : 'muted'}>
        {leftText(left)}
      </p>
      <p>
        <label>
          <input
            type="checkbox"
            checked={clears}
            onChange={(event) => setClears(event.currentTarget.checked)}
          />{' '}
          Also clear user_metadata
        </label>
      </p>
      <div class="buttons">
        <button type="submit" class="primary" disabled={value === undefined || state.kind === 'busy'}>
          Replace app_metadata
        </button>
        <span role="status" class={state.kind === 'failed' ? 'problem' : 'muted'}>
          {state.kind === 'saved' ? 'Saved' : state.kind === 'failed' ? state.message : ''}
        </span>
      </div>
    </Form>
  )
}

function leftText(left: number | undefined): string {
  if (left === undefined) return 'Expected a JSON object'
  const max = countText(BYTES_MAX)
  return left < 0
    ? `${countText(-left)} bytes over the limit of ${max} for both objects`
    : `${countText(left)} of ${max} bytes left for both objects`
}

/** The size of the canonical form (RFC 8785), which differs only in the order of members. */
function bytesOf(value: object): number {
  return new TextEncoder().encode(JSON.stringify(value)).length
}
