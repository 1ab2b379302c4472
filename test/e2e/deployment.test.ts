import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { settings } from '../../src/settings/config.js'
import { leftOut } from '../support/faults/rounds.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { startServer, type TestServer } from '../support/server/server.js'

/*
 * The files in deploy/ and compose.yaml: whatever they refer to exists, and the programs that read them
 * accept them.
 */

const rules = 'deploy/prometheus/alerts.yml'
const dashboard = 'deploy/grafana/dashboards/strandfast.json'
const unit = 'deploy/systemd/strandfast.service'

const run = (program: string, parts: string[], input = '') => {
  const { status, stdout, stderr } = spawnSync(program, parts, { encoding: 'utf8', input })
  return { status, text: `${stdout}${stderr}` }
}

const missing = (program: string, debianPackage: string, version = '--version') =>
  spawnSync(program, [version]).error === undefined
    ? undefined
    : `${program} is not here: apt-get install ${debianPackage}`

let server: TestServer
let metrics = ''

let cluster: ClusterOfOne | undefined

beforeAll(async () => {
  // The PostgreSQL address never responds, but makes the metrics of the sink exist; a node of a cluster has
  // all other metrics.
  const env = { SERVICE_INGEST_POSTGRES_URL: 'postgres://x@127.0.0.1:1/x' }
  if (noPostgres) server = await startServer({ env })
  else {
    cluster = await makeClusterOfOne()
    await cluster.run(['cluster', 'init', '--shards', '1'])
    server = await cluster.start({ env })
  }
  metrics = await (await fetch(`${server.url}/metrics`)).text()
})
afterAll(async () => {
  await server.stop()
  await cluster?.remove()
})

const histogramParts = ['_bucket', '_sum', '_count']
/** The names of counters end like this. */
const counted = /_(total|bucket|sum|count)$/

/** The names of the metrics in a PromQL expression. */
function metricsOf(expression: string): string[] {
  const names = expression.match(/\b(?:strandfast|nodejs|process)_[a-z0-9_]+/g) ?? []
  return noPostgres ? names.filter((name) => !name.startsWith('strandfast_cluster_')) : names
}

function expressionsOfRules(): string[] {
  return [...readFileSync(rules, 'utf8').matchAll(/^ +expr: (.+)$/gm)].map(([, text = '']) => text)
}

function expressionsOfDashboard(): string[] {
  const { panels, templating } = JSON.parse(readFileSync(dashboard, 'utf8'))
  const targets: { expr: string }[] = panels.flatMap(
    (panel: { targets: { expr: string }[] }) => panel.targets,
  )
  return [...targets.map(({ expr }) => expr), templating.list[0].query]
}

describe('alert rules and dashboard', () => {
  it.each([
    ['alert rules', expressionsOfRules, 11],
    ['dashboard', expressionsOfDashboard, 18],
  ])('use metrics that the server has: %s', (_what, read, least) => {
    const expressions = read()
    const names = expressions.flatMap(metricsOf)
    expect(names.length).toBeGreaterThanOrEqual(least)
    const known = new Set(
      [...metrics.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name = '', type]) =>
        type === 'histogram' ? histogramParts.map((part) => name + part) : [name],
      ),
    )
    expect(names.filter((name) => !known.has(name))).toEqual([])
    // Counters, and only counters, are read as a rate or an increase.
    for (const text of expressions) {
      const read = [...text.matchAll(/(rate|increase)\((\w+)/g)].map(([, , name = '']) => name)
      expect([text, read]).toEqual([text, metricsOf(text).filter((name) => counted.test(name))])
    }
  })

  it.skipIf(leftOut(missing('promtool', 'prometheus')))('pass promtool, and so do the metrics', () => {
    expect(run('promtool', ['check', 'rules', rules])).toMatchObject({ status: 0 })
    expect(run('promtool', ['check', 'config', 'deploy/prometheus/prometheus.yml'])).toMatchObject({
      status: 0,
    })
    expect(run('promtool', ['check', 'metrics'], metrics)).toEqual({ status: 0, text: '' })
    expect(run('promtool', ['test', 'rules', 'test/support/prometheus/alerts.test.yml'])).toMatchObject({
      status: 0,
    })
    const wrong = run('promtool', ['check', 'metrics'], '# TYPE x_total gauge\nx_total 1\n')
    expect(wrong.status).not.toBe(0)
  })
})

describe('compose.cluster.yaml', () => {
  const compose = readFileSync('compose.cluster.yaml', 'utf8')

  it('mounts existing files, and publishes each port once, on loopback only', () => {
    const mounts = [...compose.matchAll(/- \.\/(\S+?):\S+?:ro$/gm)].map(([, from = '']) => from)
    expect(mounts).toHaveLength(3)
    for (const from of mounts) expect(existsSync(from), from).toBe(true)
    const ports = [...compose.matchAll(/ports: \['([^']+)'\]/g)].map(([, port = '']) => port)
    expect(new Set(ports).size).toBe(4)
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
  })

  it('sets existing settings, including those that each node needs', () => {
    const names = [...compose.matchAll(/^ +(SERVICE_\w+):/gm)].map(([, name = '']) => name)
    const known = new Set<string>(Object.values(settings).map(({ name }) => name))
    expect(names.filter((name) => !known.has(name))).toEqual([])
    for (const name of ['SERVICE_CLUSTER_URL', 'SERVICE_MASTER_SEED', 'SERVICE_ROOT_API_KEY'])
      expect(names).toContain(name)
    expect(names.filter((name) => name === 'SERVICE_CLUSTER_NODE')).toHaveLength(3)
  })

  it.skipIf(leftOut(missing('haproxy', 'haproxy', '-v')))(
    'has a load balancer configuration that HAProxy accepts',
    () => {
      // The host names of the other containers cannot be resolved here.
      const text = readFileSync('deploy/haproxy/haproxy.cfg', 'utf8').replaceAll(/node-\d:/g, '127.0.0.1:')
      const file = join(mkdtempSync(join(tmpdir(), 'strandfast-haproxy-')), 'haproxy.cfg')
      writeFileSync(file, text)
      const checked = run('haproxy', ['-c', '-f', file])
      rmSync(dirname(file), { recursive: true })
      expect(checked).toMatchObject({ status: 0 })
    },
  )

  it('has scripts that sh accepts', () => {
    for (const name of ['primary.sh', 'standby.sh'])
      expect(run('sh', ['-n', join('deploy/postgres', name)])).toEqual({ status: 0, text: '' })
  })
})

describe('compose.yaml', () => {
  const compose = readFileSync('compose.yaml', 'utf8')

  it('mounts existing directories, in which Grafana finds its dashboard and its Prometheus', () => {
    const mounts = [...compose.matchAll(/- \.\/(\S+?):(\S+?):ro$/gm)]
    expect(mounts).toHaveLength(3)
    for (const [, from = ''] of mounts) expect(existsSync(from), from).toBe(true)
    const provider = readFileSync('deploy/grafana/provisioning/dashboards/strandfast.yml', 'utf8')
    const folder = /path: (\S+)/.exec(provider)?.[1] ?? ''
    const [, from = ''] = mounts.find(([, , to]) => to === folder) ?? []
    expect(join(from, 'strandfast.json')).toBe(dashboard)
    expect(compose).toContain(`${folder}/strandfast.json`)
  })

  it('publishes every port on loopback only', () => {
    const ports = [...compose.matchAll(/ports: \['([^']+)'\]/g)].map(([, port]) => port)
    expect(ports).toHaveLength(3)
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
  })
})

describe.skipIf(leftOut(missing('systemd-analyze', 'systemd')))('the systemd unit', () => {
  it('passes systemd-analyze verify, except for programs that this machine lacks', () => {
    const { text } = run('systemd-analyze', ['verify', unit])
    const about = text.split('\n').filter((line) => line.includes('strandfast.service'))
    expect(about.filter((line) => !/is not executable|Failed to resolve|network-online/.test(line))).toEqual(
      [],
    )
  })

  it('has an exposure below 2 of 10', () => {
    const { status, text } = run('systemd-analyze', ['security', '--offline=true', '--threshold=20', unit])
    expect(text).toMatch(/Overall exposure level for strandfast\.service: [01]\.\d OK/)
    expect(status).toBe(0)
  })
})
