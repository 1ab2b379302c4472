import { rmSync } from 'node:fs'
import { eventually } from '../../eventually.js'
import { copyData } from '../../server/copied-data.js'
import type { Chance } from '../register-chaos.js'
import { anyOf, type Fault, heal, leases, moment, type OfOne, shuffled } from './fault.js'
import { settingsOf } from './supervised-node.js'
import { upgrade } from './upgrade.js'

/** A mistake of the operator of one node, which may own shards. */
const ofAny = (name: string, act: OfOne): Fault => ({
  name,
  act: async (all, chance) => act(all, anyOf(all.nodes, chance), chance),
})

/** Resolves when the other nodes own all shards. */
const othersOwnAll: OfOne = async (all, node) => {
  const others = all.nodes.filter((one) => one !== node)
  await eventually(() => all.haveTakenOver(others))
}

/** Starts a node with wrong settings, and then with the right ones again. */
const withSettings =
  (settings: (chance: Chance) => Record<string, string>, until: OfOne): OfOne =>
  async (all, node, chance) => {
    await node.setMistakes(settings(chance))
    await until(all, node, chance)
    await moment(chance)
    await node.setMistakes({})
  }

/** More than any disk has. */
const noDisk = { SERVICE_MIN_FREE_BYTES: `${2 ** 50}` }

const differing = [
  { SERVICE_RECORD_MAX_BYTES: '200000' },
  { SERVICE_SIGNING: 'group' },
  { SERVICE_AUTH_JWT_EXPIRY_SECS: '1200' },
  { SERVICE_LOG_INTERVAL_SECS: '7' },
]

/** A node whose settings differ joins, and says so. */
const saysSo: OfOne = async (_all, node) => {
  await eventually(() => node.hasLogged('nodes of the cluster have different settings'))
}

const sleepLocked = (secs: number) =>
  `DO $$ BEGIN LOCK TABLE strandfast_segments IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(${secs}); END $$`

/** Mistakes and ordinary bad luck of operators. No answer is lost or wrong because of them. */
export const mistakes: readonly Fault[] = [
  ofAny(
    'a full disk',
    withSettings(() => noDisk, othersOwnAll),
  ),
  ofAny('a clock that is set wrong', async (all, node, chance) => {
    node.setClock(anyOf([-86_400_000, -60_000, 30_000, 120_000, 86_400_000], chance))
    await othersOwnAll(all, node, chance)
    await moment(chance)
    node.setClock(0)
  }),
  ofAny(
    'another lease',
    withSettings(() => ({ SERVICE_CLUSTER_LEASE_SECS: '2' }), othersOwnAll),
  ),
  ofAny(
    'settings that differ',
    withSettings((chance) => anyOf(differing, chance), saysSo),
  ),
  ofAny('connections that a firewall forgets', async (_all, node, chance) => {
    for (const proxy of node.proxied.proxies) proxy.forget(0)
    await leases(chance)
    heal(node.proxied.proxies, chance)
  }),
  {
    name: 'a database in another encoding',
    async act(all, chance) {
      const made = "SELECT 1 FROM pg_database WHERE datname = 'latin'"
      if ((await all.rig.primary.query(made)).length === 0)
        await all.rig.primary.query("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
      const node = anyOf(all.nodes, chance)
      const { SERVICE_CLUSTER_URL: url = '' } = settingsOf(node.proxied)
      const wrong = { SERVICE_CLUSTER_URL: url.replace(/\/postgres$/, '/latin') }
      await withSettings(() => wrong, othersOwnAll)(all, node, chance)
    },
  },
  ofAny('a second node of a name', async (all, node) => {
    const { status, stderr } = await all.run(['serve'], {
      SERVICE_CLUSTER_NODE: node.name,
      SERVICE_DATA_DIR: all.place(`second-${node.life.replace(' ', '-')}`),
      SERVICE_PORT: '0',
    })
    if (status !== 1) throw new Error(`A second node of a name ended with ${status}: ${stderr}`)
  }),
  ofAny('a directory that is restored from a copy', async (all, node, chance) => {
    const copy = all.place('copy')
    await node.kill()
    copyData(node.dataDir, copy)
    node.start()
    await eventually(() => node.responds())
    await leases(chance)
    await node.kill()
    rmSync(node.dataDir, { recursive: true })
    copyData(copy, node.dataDir)
    rmSync(copy, { recursive: true })
    node.start()
  }),
  {
    name: 'a table that is locked',
    act: async ({ rig }, chance) => void (await rig.primary.query(sleepLocked(0.2 + 2 * chance()))),
  },
  {
    name: 'tables that are rewritten',
    async act({ rig }) {
      for (const table of ['segments', 'nodes']) await rig.primary.query(`VACUUM FULL strandfast_${table}`)
    },
  },
  {
    name: 'limits of the role, and a table that is locked',
    async act({ rig, nodes }, chance) {
      await rig.primary.query("ALTER ROLE strandfast SET statement_timeout = '20ms'")
      await rig.primary.query("ALTER ROLE strandfast SET lock_timeout = '5ms'")
      await anyOf(nodes, chance).halt(anyOf(['SIGKILL', 'SIGTERM'], chance))
      await rig.primary.query(`SET statement_timeout = 0; SET lock_timeout = 0; ${sleepLocked(1)}`)
      await leases(chance)
      await rig.primary.query('ALTER ROLE strandfast RESET ALL')
    },
  },
  {
    name: 'a database that is set read-only',
    async act({ rig }, chance) {
      await rig.primary.query('ALTER SYSTEM SET default_transaction_read_only = on')
      rig.primary.reload()
      await leases(chance)
      await rig.primary.query('ALTER SYSTEM RESET default_transaction_read_only')
      rig.primary.reload()
    },
  },
  upgrade,
]

/** The mistakes in random order: all of them before any comes again. */
export function dealMistakes(rounds: number, chance: Chance): Fault[] {
  const dealt: Fault[] = []
  while (dealt.length < rounds) dealt.push(...shuffled(mistakes, chance))
  return dealt.slice(0, rounds)
}
