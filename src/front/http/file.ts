import { refuse, type Refusal } from '../../base/errors.js'
import type { Answer, FileRoute, PageName, RouteRequest } from '../routes/route.js'
import { codingHeaders, codingOf, type Coding } from './content-coding.js'

/** A file in memory, in every coding that it can be sent in. */
export interface ServedFile {
  contentType: string
  /** Names its bytes: the same for the same content, another for any other. */
  tag: string
  plain: Uint8Array
  coded: Readonly<Record<Coding, Uint8Array>>
}

/** Files of a page by the names under which routes ask for them. No path is ever made of a name. */
export type ServedFiles = ReadonlyMap<string, ServedFile>

/** The files of each page; of one that is not served there are none. */
export type ServedPages = Readonly<Record<PageName, ServedFiles | undefined>>

/**
 * Answers a request for a file: in the coding that the client asks for, or with 304 where it has those bytes already
 * (RFC 9110, 13.1.2). It is answered whole whatever `Range` asks for, and as it is where `Accept-Encoding` refuses
 * everything (RFC 9110, 14.2 and 12.5.3).
 * @returns 404 not_found where there is no such file
 */
export function answerFile(route: FileRoute, request: RouteRequest, pages: ServedPages): Answer | Refusal {
  const file = pages[route.page]?.get(route.toName(request))
  if (file === undefined) return noFile
  const { acceptEncoding, ifNoneMatch } = request.headers
  const coding = codingOf(acceptEncoding)
  // Each coding has other bytes, so another strong tag (RFC 9110, 8.8.3.3).
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

const noFile = refuse('not_found', 'Expected a path of /openapi.json')

/** Whether `If-None-Match` lists a tag; it is compared weakly (RFC 9110, 8.8.3.2). Our tags have no comma. */
function isListed(tag: string, ifNoneMatch: string): boolean {
  if (ifNoneMatch === '') return false
  return ifNoneMatch.split(',').some((item) => {
    const listed = item.trim()
    return listed === '*' || listed === tag || listed === `W/${tag}`
  })
}
