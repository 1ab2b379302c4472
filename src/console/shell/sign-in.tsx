import { useSignal } from '@preact/signals'
import type { TargetedEvent } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { serverState, type Serving } from '../parts/server-state.js'
import { signIn } from '../parts/session.js'

/** The field for the key. Over http to another host nothing can be typed before the risk is accepted. */
export function SignIn({ notice }: { notice: string | undefined }) {
  const problem = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  const accepted = useSignal(globalThis.isSecureContext)
  const field = useRef<HTMLInputElement>(null)
  // At once: whoever types before the browser has painted means this field.
  useLayoutEffect(() => field.current?.focus(), [])
  const submit = async (event: TargetedEvent<HTMLFormElement, SubmitEvent>): Promise<void> => {
    event.preventDefault()
    const key = field.current?.value.trim() ?? ''
    if (key === '') problem.value = 'Type the root key or an API key'
    else {
      busy.value = true
      problem.value = await signIn(key)
      busy.value = false
    }
    if (problem.value !== undefined) field.current?.focus()
  }
  return (
    <div class="sign-in">
      <h1>Sign in</h1>
      <p class="lead">
        Strandfast keeps records that nobody can change unnoticed. Here you read them, watch them arrive and
        check them.
      </p>
      {notice !== undefined && (
        <p class="notice" role="status">
          {notice}
        </p>
      )}
      {!globalThis.isSecureContext && <InsecureNotice accepted={accepted} />}
      <form onSubmit={(event) => void submit(event)}>
        <label for="key">Root key or API key</label>
        <input
          id="key"
          ref={field}
          type="password"
          autocomplete="off"
          spellcheck={false}
          disabled={!accepted.value}
          aria-describedby={problem.value === undefined ? 'key-note' : 'key-problem'}
          aria-invalid={problem.value !== undefined}
        />
        <p id="key-note" class="muted">
          Forgotten when this tab closes
        </p>
        {problem.value !== undefined && (
          <p id="key-problem" class="problem" role="alert">
            {problem.value}
          </p>
        )}
        <button type="submit" class="primary" disabled={busy.value || !accepted.value}>
          Sign in
        </button>
      </form>
      <KeyHelp />
      <p class="server-line">
        <ServerLine />
      </p>
      <p>
        <a href="#/verify">Check a file without signing in</a>
      </p>
    </div>
  )
}

/** For who has just started a server, and looks at this page for the first time. */
function KeyHelp() {
  return (
    <details class="key-help">
      <summary>Where is the key?</summary>
      <p class="muted">
        A new server writes its root key to the terminal at its first start, and to the file{' '}
        <code>root.key</code> in its data directory: <code>data/root.key</code>, unless settings say
        otherwise. Whoever has it makes API keys for others.
      </p>
    </details>
  )
}

function InsecureNotice({ accepted }: { accepted: { value: boolean } }) {
  return (
    <div class="notice bad">
      <p>
        <strong>This connection is not encrypted.</strong> Anybody on the way can read the key and everything
        shown here. Proofs cannot be checked on this page either: browsers allow that over https only.
      </p>
      <label class="tick">
        <input
          type="checkbox"
          checked={accepted.value}
          onChange={(event) => {
            accepted.value = event.currentTarget.checked
          }}
        />
        I trust this network and want to sign in all the same
      </label>
    </div>
  )
}

/** The state of the server, and its version. */
export function ServerLine() {
  const state = serverState.value
  const version = document.querySelector<HTMLMetaElement>('meta[name="version"]')?.content ?? ''
  const words = {
    unknown: 'Looking for the server…',
    ready: 'The server is ready',
    back: 'The server is ready',
    away: 'The server does not answer',
    limited: state.kind === 'limited' ? state.detail : '',
    standsBy: 'This node of the cluster stands by',
  }
  return (
    <>
      <span class={`dot ${state.kind}`} aria-hidden="true" /> {words[state.kind]}
      <span class="muted"> · version {version}</span>
    </>
  )
}

/** What a node of a cluster shows that stands by: it answers nobody, and another one does. */
export function StandsBy({ serving }: { serving: Serving | undefined }) {
  const url = serving?.url
  return (
    <div class="sign-in">
      <h1>This node stands by</h1>
      <p class="lead">
        Another node of its cluster serves. This one follows it, and takes over when that is gone.
      </p>
      <p class="notice" role="status">
        {serving === undefined ? 'No node is known to serve just now' : `The node ${serving.node} serves`}
        {url !== undefined && ` at ${url}`}
      </p>
      {url !== undefined && (
        <a class="button primary" href={`${url}/console`}>
          Open the console of {serving?.node}
        </a>
      )}
    </div>
  )
}
