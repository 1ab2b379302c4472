import type { ApiKey } from '../../client/index.js'
import { Confirm } from '../parts/confirm.js'
import { counted, keyDigits } from '../parts/format.js'
import { useLoaded } from '../parts/load.js'
import type { SignedIn } from '../parts/session.js'
import { Name } from '../parts/texts.js'

const NAMES_SHOWN = 5

/** Deletes a key, after saying what ends with it and what does not. */
export function DeleteKey(props: { session: SignedIn; apiKey: ApiKey; done: () => void; close: () => void }) {
  const { session, apiKey, done, close } = props
  const { key_id: id, name } = apiKey
  const heading = (
    <>
      Delete the key “<Name text={name} />”
    </>
  )
  return (
    <Confirm
      change={{
        title: `Delete ${name}`,
        heading,
        button: 'Delete the key',
        stop: 'Keep it',
        confirm: { wanted: keyDigits(id), what: 'the last 8 digits of its id' },
        apply: () => session.service.apiKeys.remove(id),
        close(isDeleted) {
          close()
          if (isDeleted) done()
        },
      }}
    >
      <WhatEnds session={session} apiKey={apiKey} />
    </Confirm>
  )
}

function WhatEnds({ session: { service, who }, apiKey }: { session: SignedIn; apiKey: ApiKey }) {
  const { key_id: id } = apiKey
  const { loaded } = useLoaded(id, async (signal) => {
    const made: string[] = []
    for await (const one of service.apiKeys.listAll({ signal })) if (one.made_by === id) made.push(one.name)
    return made
  })
  return (
    <>
      <h3>What ends, at once and for good</h3>
      <ul>
        <li>Requests with this key are refused, and the streams that it opened end.</li>
        <li>A key that it has proposed and that still waits for approval is not made.</li>
        {id === who.principal && (
          <li>
            <strong>You are signed in with this key, and will be signed out.</strong>
          </li>
        )}
      </ul>
      <h3>What stays</h3>
      <ul>
        <li>Every record that it wrote, and its other proposals.</li>
        <li>Its id, on the audit strand, with who made it and who deleted it.</li>
      </ul>
      {loaded.kind === 'loaded' && <p>{madeText(loaded.value)}</p>}
    </>
  )
}

function madeText(names: readonly string[]): string {
  if (names.length === 0) return 'It has made no other keys.'
  const shown = names.slice(0, NAMES_SHOWN).map((one) => `“${one}”`)
  const more = names.length > NAMES_SHOWN ? ' and others' : ''
  const stay = names.length === 1 ? 'stays' : 'stay'
  return `${counted(names.length, 'key')} that it made ${stay}: ${shown.join(', ')}${more}. Delete them too if nobody should use them.`
}
