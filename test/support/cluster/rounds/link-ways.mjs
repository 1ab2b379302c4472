/*
 * Preloaded into a node (`node --import`): it reaches each other node by a way of its own. TEST_LINK_WAYS names the proxy to
 * each host, and a file in which the proxy finds the port that this node was told last: another one each time that the other
 * node starts.
 */
import { writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import tls from 'node:tls'

const ways = JSON.parse(process.env.TEST_LINK_WAYS)
const { connect } = tls

tls.connect = (options, ...rest) => {
  const way = ways[options.host]
  if (way === undefined) return connect(options, ...rest)
  writeFileSync(way.file, `${options.port}`)
  return connect({ ...options, host: '127.0.0.1', port: way.port }, ...rest)
}
syncBuiltinESMExports()
