import type { ApiKey } from '../../client/index.js'
import { Confirm } from '../parts/confirm.js'
import { counted, keyDigits } from '../parts/format.js'
import { useLoaded } from '../parts/load.js'
import type { SignedIn } from '../parts/session.js'
import { Name } from '../parts/texts.js'

const NAMES_SHOWN = 5

/** A dialog that deletes a key, after listing the consequences. */
export function DeleteKey(props: { session: SignedIn; apiKey: ApiKey; done: () => void; close: () => void }) {
  const { session, apiKey, done, close } = props
  const { key_id: id, name } = apiKey
  const heading = (
    <>
      Delete key “<Name text={name} />”
    </>
  )
  return (
    <Confirm
      change={{
        title: `Delete ${name}`,
        heading,
        button: 'Delete key',
        confirm: { wanted: keyDigits(id), what: 'the last 8 digits of its ID' },
        apply: () => session.service.apiKeys.remove(id),
        close(isDeleted) {
          close()
          if (isDeleted) done()
        },
      }}
    >
      <Consequences session={session} apiKey={apiKey} />
    </Confirm>
  )
}

function Consequences({ session: { service, who }, apiKey }: { session: SignedIn; apiKey: ApiKey }) {
  const { key_id: id } = apiKey
  const { loaded } = useLoaded(id, async (signal) => {
    const created: string[] = []
    for await (const one of service.apiKeys.listAll({ signal }))
      if (one.made_by === id) created.push(one.name)
    return created
  })
  return (
    <>
      <h3>What ends immediately and permanently</h3>
      <ul>
        <li>Requests with this key are refused, and streams opened with it end.</li>
        <li>A key that it has proposed and that is still pending is not created.</li>
        {id === who.principal && (
          <li>
            <strong>You are signed in with this key and will be signed out.</strong>
          </li>
        )}
      </ul>
      <h3>What stays</h3>
      <ul>
        <li>All records that it wrote, and its other proposals.</li>
        <li>Its ID on the audit strand, with the keys that created and deleted it.</li>
      </ul>
      {loaded.kind === 'loaded' && <p>{createdText(loaded.value)}</p>}
    </>
  )
}

function createdText(names: readonly string[]): string {
  if (names.length === 0) return 'This key has created no other keys.'
  const shown = names.slice(0, NAMES_SHOWN).map((one) => `“${one}”`)
  const more = names.length > NAMES_SHOWN ? ' and others' : ''
  const stay = names.length === 1 ? 'stays' : 'stay'
  return `${counted(names.length, 'key')} that it created ${stay}: ${shown.join(', ')}${more}. Delete them too if they should not be used.`
}
