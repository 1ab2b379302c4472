/*
 * The target of mailed links if SERVICE_MAIL_LINK_BASE_URL is the address of this folder. Redirects to the sign-in page, which
 * uses the token only after a click, because mail scanners open links too. The token is passed after `#`, so that no server
 * receives it again, and the address with the token is replaced in the tab's history.
 */

const given = new URLSearchParams(location.search)
const page = new URL('./', import.meta.url)
// A link contains no service, because an application knows its service. Here the default is the page's origin.
if (given.has('organism')) page.searchParams.set('organism', given.get('organism'))
page.hash = new URLSearchParams({ [document.body.dataset.purpose]: given.get('token') ?? '' }).toString()
location.replace(page)
