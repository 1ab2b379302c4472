/*
 * Preloaded into a node (`node --import`), so that it reaches each other node through a separate proxy.
 * TEST_LINK_WAYS names the proxy for each host, and a file from which the proxy reads the last known port of
 * that node: it changes with each start of the node.
 */
import { writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import tls from 'node:tls'

const targets = JSON.parse(process.env.TEST_LINK_WAYS)
const { connect } = tls

tls.connect = (options, ...rest) => {
  const target = targets[options.host]
  if (target === undefined) return connect(options, ...rest)
  writeFileSync(target.file, `${options.port}`)
  return connect({ ...options, host: '127.0.0.1', port: target.port }, ...rest)
}
syncBuiltinESMExports()
