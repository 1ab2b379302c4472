/*
 * Shows the signed-in user. Content from users and services is shown as text, never as markup.
 */

const element = (id) => document.getElementById(id)
const time = (milliseconds) => (milliseconds === null ? 'never' : new Date(milliseconds).toLocaleString())

/** Reads and shows the user, the sessions and the passkeys. `act` runs the action of a button. */
export async function showAccount(auth, act) {
  const [me, { sessions }] = await Promise.all([auth.me(), auth.sessions.list(), showPasskeys(auth, act)])
  showUser(me)
  element('sessions').replaceChildren(...sessions.map((session) => sessionRow(session, auth, act)))
  return me
}

/** Removes the account from the page. */
export function clearAccount() {
  for (const id of ['user', 'sessions', 'passkeys']) element(id).replaceChildren()
  element('metadata').reset()
}

/** Reads and shows the passkeys. */
export async function showPasskeys(auth, act) {
  const { passkeys } = await auth.passkeys.list()
  element('passkeys').replaceChildren(...passkeys.map((passkey) => passkeyItem(passkey, auth, act)))
}

function showUser(me) {
  const facts = {
    'E-mail': me.email,
    Confirmed: me.verified ? 'yes' : 'no',
    User: me.user_id,
    Created: time(me.created_at_ms),
    'Last sign-in': time(me.last_login_at_ms),
    'Set by the application': JSON.stringify(me.app_metadata),
  }
  const parts = Object.entries(facts).flatMap(([term, text]) => [
    elementOf('dt', term),
    elementOf('dd', text),
  ])
  element('user').replaceChildren(...parts)
  element('metadata').elements.metadata.value = JSON.stringify(me.user_metadata, null, 2)
}

function sessionRow({ sid, created_at_ms, last_used_at_ms, amr, current }, auth, act) {
  const row = document.createElement('tr')
  const texts = [time(created_at_ms), time(last_used_at_ms), amr.join(', ')]
  const last = elementOf('td', current ? 'this session' : '')
  if (!current) {
    const end = elementOf('button', 'End')
    end.addEventListener('click', () =>
      act(end, async () => {
        await auth.sessions.kill(sid)
        row.remove()
        return 'The session has ended.'
      }),
    )
    last.append(end)
  }
  row.append(...texts.map((text) => elementOf('td', text)), last)
  return row
}

function passkeyItem({ id, created_at_ms, last_used_at_ms }, auth, act) {
  const item = elementOf('li', `Created ${time(created_at_ms)}, last used ${time(last_used_at_ms)} `)
  const remove = elementOf('button', 'Delete')
  remove.addEventListener('click', () =>
    act(remove, async () => {
      await auth.passkeys.delete(id)
      item.remove()
      return 'The passkey was deleted. Delete it in your browser, too.'
    }),
  )
  item.append(remove)
  return item
}

function elementOf(name, text) {
  const node = document.createElement(name)
  node.textContent = text
  return node
}
