/*
 * What a mailed link opens, where SERVICE_MAIL_LINK_BASE_URL is the address of this folder: leads on to the page, which
 * asks before it uses the token, as mail scanners open links too. The token goes behind `#`, where no server sees it
 * again, and the address that held it makes room in the tab's history.
 */

const given = new URLSearchParams(location.search)
const page = new URL('./', import.meta.url)
// A link names no service: an application knows its own. Here it is the page's origin unless somebody changes it.
if (given.has('organism')) page.searchParams.set('organism', given.get('organism'))
page.hash = new URLSearchParams({ [document.body.dataset.purpose]: given.get('token') ?? '' }).toString()
location.replace(page)
