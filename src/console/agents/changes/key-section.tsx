import { useState } from 'preact/hooks'
import type { KeyRotated } from '../../../client/index.js'
import { useFocusAfter } from '../../parts/confirm.js'
import { Tick } from '../../parts/field.js'
import { keyDigits } from '../../parts/format.js'
import { CopyButton, ScopedButton } from '../../parts/texts.js'
import { may } from '../../parts/session.js'
import { ChangeAgent } from './change-agent.js'
import { type ChangeProps, Rule, Waiting } from './rule.js'
import { leftByRotation } from './words.js'

/** The key of an agent, and another one in its place. */
export function KeySection(props: ChangeProps) {
  const { session, status, waiting } = props
  const { public_key: key } = status
  const [isAsking, setAsking] = useState(false)
  const { place, changed } = useFocusAfter<HTMLHeadingElement>(props.reload)
  return (
    <section aria-labelledby="key-title">
      <h2 id="key-title" ref={place} tabIndex={-1}>
        Key
      </h2>
      <p class="long">
        New records are signed with <code>{key}</code> <CopyButton text={key} name="the key in force" />
      </p>
      <p class="muted">
        Another key pair is made by the server and never leaves it. An agent changes its key at most 255
        times.
      </p>
      {waiting === undefined ? (
        <ScopedButton
          allowed={may(session.who, 'agents:admin')}
          scope="agents:admin"
          onClick={() => setAsking(true)}
        >
          Change the key
        </ScopedButton>
      ) : (
        <Waiting proposal={waiting} />
      )}
      {isAsking && <KeyQuestion {...props} reload={changed} close={() => setAsking(false)} />}
    </section>
  )
}

function KeyQuestion(props: ChangeProps & { close: () => void }) {
  const { session, status, deciding, reload, close } = props
  const { agent_id: agent, zone, public_key: key } = status
  const [isLeaked, setLeaked] = useState(false)
  return (
    <ChangeAgent<KeyRotated>
      change={{
        agent,
        title: `Change the key of ${agent}`,
        left: leftByRotation(isLeaked),
        button: zone === 'free' ? 'Change it for good' : 'Propose it',
        confirm: { wanted: keyDigits(key), what: 'the last 8 digits of the key in force' },
        apply: () => {
          const reason = isLeaked ? { reason: 'compromise' as const } : {}
          return session.service.agent(agent).rotateKey(undefined, reason)
        },
        told: ({ public_key: publicKey }) => ({
          publicKey,
          text: isLeaked
            ? 'New records are signed with the key below. Give it, and the strand, to whoever checks exports.'
            : 'New records are signed with the key below.',
        }),
      }}
      rule={<Rule session={session} status={status} deciding={deciding} />}
      close={(isChanged) => {
        close()
        if (isChanged) reload()
      }}
    >
      <Tick isOn={isLeaked} set={setLeaked}>
        The old key may be in other hands
      </Tick>
    </ChangeAgent>
  )
}
