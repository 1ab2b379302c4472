import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Form, Problem, Tick } from '../parts/field.js'
import { serverState, type ServingNode } from '../parts/server-state.js'
import { type Scope, type SignedIn, signIn } from '../parts/session.js'
import { Button, Facts, Time } from '../parts/texts.js'
import { Principal, useKeyNames } from '../parts/principal.js'
import { hiddenScreens } from './nav-items.js'
import { identityText, scopeMeanings } from '../parts/labels.js'

/** The sign-in form. Over http to another host the field is disabled until the user accepts the risk. */
export function SignIn({ notice }: { notice: string | undefined }) {
  const problem = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  const accepted = useSignal(globalThis.isSecureContext)
  const field = useRef<HTMLInputElement>(null)
  // A layout effect, so that keys typed before the first paint go to this field.
  useLayoutEffect(() => field.current?.focus(), [])
  const submit = async (): Promise<void> => {
    const key = field.current?.value.trim() ?? ''
    if (key === '') problem.value = 'Enter the root key or an API key'
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
        Strandfast stores records in a tamper-evident log. Here you can read them, watch them arrive and
        verify them.
      </p>
      {notice !== undefined && (
        <p class="notice" role="status">
          {notice}
        </p>
      )}
      {!globalThis.isSecureContext && <InsecureNotice accepted={accepted} />}
      <Form submit={submit}>
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
          For all tabs of this browser, until you close them or sign out
        </p>
        <Problem id="key-problem" text={problem.value} />
        <Button text="Sign in" type="submit" class="primary" disabled={busy.value || !accepted.value} />
      </Form>
      <KeyHelp />
      <p class="server-line">
        <ServerLine />
      </p>
      <p>
        <a href="#/verify">Verify a file without signing in</a>
      </p>
    </div>
  )
}

/** Explains where a new server writes its root key. */
function KeyHelp() {
  return (
    <details class="key-help">
      <summary>Where is the key?</summary>
      <p class="muted">
        A new server writes its root key to the terminal at its first start, and to the file{' '}
        <code>root.key</code> in its data directory: <code>data/root.key</code> by default. Use the root key
        to create API keys for other users and programs.
      </p>
    </details>
  )
}

function InsecureNotice({ accepted }: { accepted: { value: boolean } }) {
  return (
    <div class="notice bad">
      <p>
        <strong>This connection is not encrypted.</strong> Anyone on the network path can read the key and
        everything shown here. This page cannot check proofs either: browsers allow that over https only.
      </p>
      <Tick isOn={accepted.value} set={(isOn) => (accepted.value = isOn)}>
        I trust this network and want to sign in anyway
      </Tick>
    </div>
  )
}

/** The state of the server, and its version. */
function ServerLine() {
  const state = serverState.value
  const version = document.querySelector<HTMLMetaElement>('meta[name="version"]')?.content ?? ''
  const texts = {
    unknown: 'Connecting to the server…',
    ready: 'The server is ready',
    back: 'The server is ready',
    unreachable: 'The server does not respond',
    limited: state.kind === 'limited' ? state.detail : '',
    standby: 'This node is a standby',
  }
  return (
    <>
      <span class={`dot ${state.kind}`} aria-hidden="true" /> {texts[state.kind]}
      <span class="muted"> · version {version}</span>
    </>
  )
}

export function StandbyPage({ serving }: { serving: ServingNode | undefined }) {
  const url = serving?.url
  return (
    <div class="sign-in">
      <h1>This node is a standby</h1>
      <p class="lead">
        Another node of the cluster serves requests. This node replicates the data and takes over if the
        active node fails.
      </p>
      <p class="notice" role="status">
        {serving === undefined ? 'No active node is known at the moment' : `Active node: ${serving.node}`}
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

/** The signed-in identity and its permissions. */
export function SignedInPage({ session }: { session: SignedIn }) {
  const { who } = session
  const hidden = hiddenScreens(who)
  const names = useKeyNames(session)
  return (
    <div class="page narrow">
      <h1>{identityText(who)}</h1>
      <Facts
        facts={{
          'Key ID': who.kind === 'api_key' ? <code>{who.principal}</code> : undefined,
          'Created by':
            who.made_by === null ? undefined : <Principal id={who.made_by} names={names} who={who} />,
          Expires: who.expires_at_ms === null ? undefined : <Time ms={who.expires_at_ms} />,
          Agents: who.agents.length === 0 ? 'All' : who.agents.map((name) => <code key={name}>{name} </code>),
          Server: <ServerLine />,
        }}
      />
      <h2>Permissions</h2>
      <Permissions session={session} />
      {hidden !== undefined && <p class="muted">{hidden.text}.</p>}
    </div>
  )
}

function Permissions({ session: { who } }: { session: SignedIn }) {
  if (who.kind === 'user') return <p>The rules of each agent define what this user can do.</p>
  const all = who.scopes.includes('admin:*')
  const scopes = all ? (['admin:*'] satisfies Scope[]) : who.scopes
  return (
    <ul class="plain">
      {scopes.map((scope) => (
        <li key={scope}>
          {scopeMeanings[scope]} <code class="muted">{scope}</code>
        </li>
      ))}
    </ul>
  )
}
