import { encodeLate, type LinkMessage } from '../../../src/cluster/links/framing.js'
import { Link } from '../../../src/cluster/links/link.js'
import { connectLink, listenForLinks, type LinkSockets } from '../../../src/cluster/links/sockets.js'

/** The node that receives a message: the one that connected, or the owner of shards. */
export type Receiver = 'front' | 'owner'

/** Replaces a message. @returns undefined for a message that is passed on unchanged */
export type Lie = (message: LinkMessage, to: Receiver) => LinkMessage | undefined

/** A node between two others that has the key of their cluster, so it can replace their messages. */
export interface LyingLink {
  port: number
  /** Replaces one message, the first one that the lie fits. @returns resolves when it was replaced */
  replaceOne(lie: Lie): Promise<void>
  stop(): void
}

/** How often what was read is acknowledged, milliseconds. */
const LOOK_MS = 50

/** The messages that do not wait for others (docs/adr/0047-links.md). */
const urgent = new Set(['hello', 'ping', 'serves', 'acknowledged', 'leaves', 'pong', 'allAcknowledged'])

/** @param target returns the port of the node to which connections are passed on */
export async function startLyingLink(key: Buffer, target: () => number): Promise<LyingLink> {
  let waiting: { lie: Lie; done(): void } | undefined
  const links = new Set<Link>()
  const pass = (message: LinkMessage, { to, link }: { to: Receiver; link: Link }) => {
    const lie = waiting?.lie(message, to)
    send(link, lie ?? message)
    if (lie === undefined) return
    waiting?.done()
    waiting = undefined
  }
  const join = async (front: LinkSockets) => {
    const owner = await connectLink({ host: '127.0.0.1', port: target(), key })
    const closed = () => {
      for (const link of [toFront, toOwner]) {
        links.delete(link)
        link.close('the other end has closed')
      }
    }
    const toFront: Link = new Link(front, {
      message: (message) => pass(message, { to: 'owner', link: toOwner }),
      closed,
    })
    const toOwner: Link = new Link(owner, {
      message: (message) => pass(message, { to: 'front', link: toFront }),
      closed,
    })
    links.add(toFront).add(toOwner)
  }
  const server = await listenForLinks({ host: '127.0.0.1', port: 0, key, failed: () => {} }, (sockets) => {
    join(sockets).catch(() => {
      for (const socket of Object.values(sockets)) socket.destroy()
    })
  })
  const looks = setInterval(() => {
    for (const link of links) link.look(performance.now())
  }, LOOK_MS)
  return {
    port: server.port,
    replaceOne: (lie) => new Promise((done) => (waiting = { lie, done })),
    stop() {
      clearInterval(looks)
      server.close()
      for (const link of links) link.close('the test has ended')
    },
  }
}

function send(link: Link, message: LinkMessage): void {
  if (message.kind === 'frame') link.sendFrame(message.shard, message.frame)
  else if (message.kind === 'late')
    link.sendLate({ principal: '', parts: encodeLate(message, message.frame) })
  else if (urgent.has(kindOf(message) ?? '')) link.sendUrgent(message.value)
  else link.send(message.value)
}

/** The kind of a message that is a value. */
export function kindOf(message: LinkMessage): string | undefined {
  const value: unknown = message.kind === 'value' ? message.value : undefined
  if (typeof value !== 'object' || value === null || !('kind' in value)) return undefined
  return typeof value.kind === 'string' ? value.kind : undefined
}
