/** A minimal browser for a sign-in with a provider: it has cookies and fills in forms. */
export class OauthBrowser {
  readonly #cookies = new Map<string, { value: string; path: string; host: string }>()

  /** Requests an address without following redirects. */
  async get(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const { host, pathname } = new URL(url)
    const sent = [...this.#cookies.entries()]
      .filter(([, cookie]) => cookie.host === host && isBelow(pathname, cookie.path))
      .map(([key, { value }]) => `${key.split('|')[0]}=${value}`)
    const headers = new Headers(init.headers)
    if (sent.length > 0) headers.set('cookie', sent.join('; '))
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) this.#take(line, host)
    return response
  }

  /**
   * Follows redirects and submits forms until an address for which `isEnd` is true.
   * @param login the subject to sign in as; if undefined, the user cancels
   */
  async follow(from: string, login: string | undefined, isEnd: (url: URL) => boolean): Promise<URL> {
    let url = new URL(from)
    let init: RequestInit = {}
    for (let step = 0; step < 20; step++) {
      if (isEnd(url)) return url
      const response = await this.get(url, init)
      init = {}
      const location = response.headers.get('location')
      if (location !== null) url = new URL(location, url)
      else [url, init] = answerForm(await response.text(), url, login)
    }
    throw new Error(`Too many redirects, the last one to ${url.href}`)
  }

  /** Cookies by their names. */
  get cookies(): ReadonlyMap<string, string> {
    return new Map([...this.#cookies].map(([key, { value }]) => [key.split('|')[0] ?? '', value]))
  }

  #take(line: string, host: string): void {
    const [pair = '', ...attributes] = line.split(/;\s*/)
    const [name = '', value = ''] = pair.split(/=(.*)/s)
    const path = attributes.find((one) => /^path=/i.test(one))?.slice(5) ?? '/'
    const key = `${name}|${host}|${path}`
    if (value === '' || attributes.some((one) => /^(max-age=0|expires=thu, 01 jan 1970)/i.test(one))) {
      this.#cookies.delete(key)
    } else this.#cookies.set(key, { value, path, host })
  }
}

function isBelow(path: string, cookiePath: string): boolean {
  if (path === cookiePath || cookiePath === '/') return true
  return path.startsWith(cookiePath.endsWith('/') ? cookiePath : `${cookiePath}/`)
}

/** Fills in the form of a page, or follows its link to cancel if there is no login. */
function answerForm(html: string, url: URL, login: string | undefined): [URL, RequestInit] {
  const action = /<form[^>]*action="([^"]+)"/.exec(html)?.[1]
  if (action === undefined) throw new Error(`Expected a form at ${url.href}: ${html.slice(0, 300)}`)
  const abort = /href="([^"]*\/abort)"/.exec(html)?.[1]
  if (login === undefined) return [new URL(abort ?? '', url), {}]
  const prompt = /name="prompt"[^>]*value="([^"]+)"/.exec(html)?.[1] ?? 'login'
  const body = new URLSearchParams(prompt === 'login' ? { prompt, login, password: 'x' } : { prompt })
  return [new URL(action, url), { method: 'POST', body }]
}
