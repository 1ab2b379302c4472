import { limits } from '../base/limits.js'

/*
 * The only door to uWebSockets.js. It reads the size of a header block from the environment as it loads, so it is
 * loaded after that is set.
 */
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(limits.headerBlockBytesMax)
const uws = await import('uWebSockets.js')

export const { App, SSLApp, us_listen_socket_close: closeListenSocket, us_socket_local_port: localPort } = uws

export type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket as ListenSocket,
} from 'uWebSockets.js'
