/*
 * Shows who is signed in. What users and services wrote is shown as text, never as markup.
 */

const element = (id) => document.getElementById(id)
const time = (milliseconds) => (milliseconds === null ? 'never' : new Date(milliseconds).toLocaleString())

/** Reads the user, the sessions and the passkeys, and shows them. `act` runs what a button does. */
export async function showAccount(auth, act) {
  const [me, { sessions }] = await Promise.all([auth.me(), auth.sessions.list(), showPasskeys(auth, act)])
  showUser(me)
  element('sessions').replaceChildren(...sessions.map((session) => sessionRow(session, auth, act)))
  return me
}

/** Takes what was shown out of the page again. */
export function clearAccount() {
  for (const id of ['user', 'sessions', 'passkeys']) element(id).replaceChildren()
  element('metadata').reset()
}

/** Reads the passkeys and shows them. */
export async function showPasskeys(auth, act) {
  const { passkeys } = await auth.passkeys.list()
  element('passkeys').replaceChildren(...passkeys.map((passkey) => passkeyItem(passkey, auth, act)))
}

function showUser(me) {
  const facts = {
    'E-mail': me.email,
    Confirmed: me.verified ? 'yes' : 'no',
    User: me.user_id,
    Since: time(me.created_at_ms),
    'Last sign-in': time(me.last_login_at_ms),
    'Set by the application': JSON.stringify(me.app_metadata),
  }
  const parts = Object.entries(facts).flatMap(([term, text]) => [made('dt', term), made('dd', text)])
  element('user').replaceChildren(...parts)
  element('metadata').elements.metadata.value = JSON.stringify(me.user_metadata, null, 2)
}

function sessionRow({ sid, created_at_ms, last_used_at_ms, amr, current }, auth, act) {
  const row = document.createElement('tr')
  const texts = [time(created_at_ms), time(last_used_at_ms), amr.join(', ')]
  const last = made('td', current ? 'this one' : '')
  if (!current) {
    const end = made('button', 'End')
    end.addEventListener('click', () =>
      act(end, async () => {
        await auth.sessions.kill(sid)
        row.remove()
        return 'The session has ended.'
      }),
    )
    last.append(end)
  }
  row.append(...texts.map((text) => made('td', text)), last)
  return row
}

function passkeyItem({ id, created_at_ms, last_used_at_ms }, auth, act) {
  const item = made('li', `Since ${time(created_at_ms)}, last used: ${time(last_used_at_ms)} `)
  const remove = made('button', 'Delete')
  remove.addEventListener('click', () =>
    act(remove, async () => {
      await auth.passkeys.delete(id)
      item.remove()
      return 'The passkey signs in no more. Delete it in your browser, too.'
    }),
  )
  item.append(remove)
  return item
}

function made(name, text) {
  const node = document.createElement(name)
  node.textContent = text
  return node
}
