import { refuse, type Refusal } from '../../base/errors.js'
import type { Answer, FileRoute, PageName, RouteRequest } from '../routes/route.js'
import { codingHeaders, codingOf, type Coding } from './content-coding.js'

/** A file in memory, in every content coding. */
export interface ServedFile {
  contentType: string
  /** Identifies its content, like an ETag. */
  tag: string
  plain: Uint8Array
  coded: Readonly<Record<Coding, Uint8Array>>
}

/** Files of a page by name. A name is never used as a path in the file system. */
export type ServedFiles = ReadonlyMap<string, ServedFile>

/** The files of each page; undefined for a page that is not served. */
export type ServedPages = Readonly<Record<PageName, ServedFiles | undefined>>

/**
 * Answers a request for a file: in the coding that the client prefers, or with 304 if the client has those
 * bytes (RFC 9110, 13.1.2). Ignores `Range`, and `Accept-Encoding` if it refuses everything (RFC 9110, 14.2
 * and 12.5.3).
 * @returns 404 not_found if there is no such file
 */
export function answerFile(route: FileRoute, request: RouteRequest, pages: ServedPages): Answer | Refusal {
  const file = pages[route.page]?.get(route.toName(request))
  if (file === undefined) return noFile
  const { acceptEncoding, ifNoneMatch } = request.headers
  const coding = codingOf(acceptEncoding)
  // Each coding has different bytes, so it needs its own strong tag (RFC 9110, 8.8.3.3).
  const tag = coding === undefined ? `"${file.tag}"` : `"${file.tag}-${coding}"`
  const { contentType } = file
  const cached = [['ETag', tag] as const, ['Cache-Control', route.cacheControl] as const]
  if (isListed(tag, ifNoneMatch)) {
    return {
      status: 304,
      body: '',
      contentType,
      headers: [...cached, ...codingHeaders(undefined), ...route.headers],
    }
  }
  const headers = [...cached, ...codingHeaders(coding), ...route.headers]
  return { status: 200, body: [coding === undefined ? file.plain : file.coded[coding]], contentType, headers }
}

const noFile = refuse('not_found', 'Unknown path: /openapi.json lists all paths')

/** Whether `If-None-Match` lists a tag, by weak comparison (RFC 9110, 8.8.3.2). Our tags contain no comma. */
function isListed(tag: string, ifNoneMatch: string): boolean {
  if (ifNoneMatch === '') return false
  return ifNoneMatch.split(',').some((item) => {
    const listed = item.trim()
    return listed === '*' || listed === tag || listed === `W/${tag}`
  })
}
