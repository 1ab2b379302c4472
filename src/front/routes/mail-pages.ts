import { createHash } from 'node:crypto'
import type { HandlerRoute } from './route.js'

/*
 * Plain pages for the links in mails, for applications that have no such pages: SERVICE_MAIL_LINK_BASE_URL
 * can be the address of the server. Opening a page does not use up the link, because mail scanners open
 * links; its button posts the token.
 */

interface MailPage {
  path: string
  title: string
  button: string
  /** Path below the auth routes of the namespace. */
  post: string
  done: string
  password: boolean
}

const pages: readonly MailPage[] = [
  {
    path: '/magic-link',
    title: 'Sign in',
    button: 'Sign in',
    post: 'magic-link/verify',
    done: 'You are signed in.',
    password: false,
  },
  {
    path: '/verify-email',
    title: 'Confirm your e-mail address',
    button: 'Confirm',
    post: 'verify-email',
    done: 'Your address is confirmed.',
    password: false,
  },
  {
    path: '/reset-password',
    title: 'Set a new password',
    button: 'Set the password',
    post: 'password/reset',
    done: 'Your password is set. Sign in with it.',
    password: true,
  },
]

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:15vh auto;padding:0 1rem;color:#17211d;background:#fff}
input,button,textarea{font:inherit;width:100%;box-sizing:border-box;padding:.6rem;margin:.4rem 0;border:1px solid #8a9a93;border-radius:.4rem}
[type=checkbox]{width:auto}button{background:#0a7558;border-color:#0a7558;color:#fff;cursor:pointer}button:disabled{opacity:.6}
@media(prefers-color-scheme:dark){body{color:#e6efeb;background:#101714}input{background:#17211d;color:inherit}}`

// Removes the token from the address bar, so that it stays neither in the history nor in a referrer.
const script = `'use strict';(() => {
const query = new URLSearchParams(location.search)
history.replaceState(null, '', location.pathname)
const form = document.querySelector('form'), state = document.querySelector('[role=status]')
const organism = query.get('organism')
const below = organism === null ? '/v1/auth/' : '/v1/organisms/' + encodeURIComponent(organism) + '/auth/'
// Shows the access token; an application's own page would use it instead.
const show = (token) => {
  if (token === undefined) return
  const text = Object.assign(document.createElement('textarea'), { readOnly: true, rows: 6, value: token })
  text.setAttribute('aria-label', 'Access token')
  document.body.append(text)
}
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button'), password = form.querySelector('[type=password]')
  const passkeys = form.querySelector('[type=checkbox]')
  button.disabled = true
  const body = { token: query.get('token') ?? '', ...(password && { password: password.value }), ...(passkeys && { remove_passkeys: passkeys.checked }) }
  try {
    const response = await fetch(below + form.dataset.post, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    const answer = await response.json()
    if (response.ok) { form.hidden = true; state.textContent = form.dataset.done; show(answer.token) }
    else { state.textContent = answer.title + '. ' + (answer.reasons ?? [answer.detail]).join('. ') + '.'; button.disabled = answer.code === 'invalid_token' }
  } catch { state.textContent = 'The server cannot be reached. Try again.'; button.disabled = false }
})
})()`

const headers = plainPageHeaders([`script-src ${digestOf(script)}`, "connect-src 'self'"])

/** GET /magic-link, /verify-email and /reset-password (docs/SIGN-IN.md). */
export const mailPageRoutes: readonly HandlerRoute[] = pages.map((page) => {
  const body = render(page)
  return {
    kind: 'handler',
    method: 'get',
    path: page.path,
    scope: 'none',
    anyQuery: true,
    docs: {
      summary: `The page behind a mailed link: ${page.title}`,
      tag: 'Authentication',
      answers: { 200: { mediaType: 'text/html', description: 'HTML with a button that posts the token' } },
    },
    handle: () => Promise.resolve({ status: 200, body, contentType: 'text/html; charset=utf-8', headers }),
  }
})

function render({ title, button, post, done, password }: MailPage): string {
  const input =
    '<label>New password<input type="password" autocomplete="new-password" minlength="8" required></label>' +
    '<label><input type="checkbox"> Also remove all passkeys of the account</label>'
  return plainPage(
    title,
    `<form data-post="${post}" data-done="${done}">${password ? input : ''}<button>${button}</button></form>
<p role="status"></p><script>${script}</script>`,
  )
}

/** A plain HTML page. @param content HTML below the title */
export function plainPage(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
<style>${style}</style></head>
<body><h1>${title}</h1>
${content}</body>
</html>
`
}

/** Headers of a plain page. Its content security policy allows only `more`. */
export function plainPageHeaders(more: readonly string[] = []): (readonly [name: string, value: string])[] {
  const forbidden = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
  const policy = ["default-src 'none'", `style-src ${digestOf(style)}`, ...more, ...forbidden].join('; ')
  return [
    ['Content-Security-Policy', policy],
    ['Referrer-Policy', 'no-referrer'],
  ]
}

function digestOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}
