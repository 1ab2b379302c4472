import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { leftOut } from '../support/faults/rounds.js'
import { startServer, type TestServer } from '../support/server/server.js'

/*
 * The files of deploy/ and compose.yaml: what they name exists, and the programs that read them find nothing wrong.
 */

const rules = 'deploy/prometheus/alerts.yml'
const dashboard = 'deploy/grafana/dashboards/strandfast.json'
const unit = 'deploy/systemd/strandfast.service'

const run = (program: string, parts: string[], input = '') => {
  const { status, stdout, stderr } = spawnSync(program, parts, { encoding: 'utf8', input })
  return { status, text: `${stdout}${stderr}` }
}

const missing = (program: string, debianPackage: string) =>
  spawnSync(program, ['--version']).error === undefined
    ? undefined
    : `${program} is not here: apt-get install ${debianPackage}`

let server: TestServer
let metrics = ''

beforeAll(async () => {
  // A PostgreSQL that never answers, so that the metrics of the sink are there.
  server = await startServer({ env: { SERVICE_INGEST_POSTGRES_URL: 'postgres://x@127.0.0.1:1/x' } })
  metrics = await (await fetch(`${server.url}/metrics`)).text()
})
afterAll(() => server.stop())

const histogramParts = ['_bucket', '_sum', '_count']
/** What only grows, by the end of its name. */
const counted = /_(total|bucket|sum|count)$/

/** The names and the labels that an expression of PromQL asks for. */
function metricsOf(expression: string): string[] {
  return expression.match(/\b(?:strandfast|nodejs|process)_[a-z0-9_]+/g) ?? []
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
  ])('name metrics that the server has: %s', (_what, read, least) => {
    const expressions = read()
    const names = expressions.flatMap(metricsOf)
    expect(names.length).toBeGreaterThanOrEqual(least)
    const known = new Set(
      [...metrics.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name = '', type]) =>
        type === 'histogram' ? histogramParts.map((part) => name + part) : [name],
      ),
    )
    expect(names.filter((name) => !known.has(name))).toEqual([])
    // Every metric that counts is read as a rate or an increase, and no other is.
    for (const text of expressions) {
      const read = [...text.matchAll(/(rate|increase)\((\w+)/g)].map(([, , name = '']) => name)
      expect([text, read]).toEqual([text, metricsOf(text).filter((name) => counted.test(name))])
    }
  })

  it.skipIf(leftOut(missing('promtool', 'prometheus')))('pass promtool, as the metrics do', () => {
    expect(run('promtool', ['check', 'rules', rules])).toMatchObject({ status: 0 })
    expect(run('promtool', ['check', 'config', 'deploy/prometheus/prometheus.yml'])).toMatchObject({
      status: 0,
    })
    expect(run('promtool', ['check', 'metrics'], metrics)).toEqual({ status: 0, text: '' })
    const wrong = run('promtool', ['check', 'metrics'], '# TYPE x_total gauge\nx_total 1\n')
    expect(wrong.status).not.toBe(0)
  })
})

describe('compose.yaml', () => {
  const compose = readFileSync('compose.yaml', 'utf8')

  it('mounts folders that are here, and Grafana finds its dashboard and Prometheus in them', () => {
    const mounts = [...compose.matchAll(/- \.\/(\S+?):(\S+?):ro$/gm)]
    expect(mounts).toHaveLength(3)
    for (const [, from = ''] of mounts) expect(existsSync(from), from).toBe(true)
    const provider = readFileSync('deploy/grafana/provisioning/dashboards/strandfast.yml', 'utf8')
    const folder = /path: (\S+)/.exec(provider)?.[1] ?? ''
    const [, from = ''] = mounts.find(([, , to]) => to === folder) ?? []
    expect(join(from, 'strandfast.json')).toBe(dashboard)
    expect(compose).toContain(`${folder}/strandfast.json`)
  })

  it('publishes every port on this machine alone', () => {
    const ports = [...compose.matchAll(/ports: \['([^']+)'\]/g)].map(([, port]) => port)
    expect(ports).toHaveLength(3)
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
  })
})

describe.skipIf(leftOut(missing('systemd-analyze', 'systemd')))('the systemd unit', () => {
  it('verifies, but for the programs that a machine has or has not', () => {
    const { text } = run('systemd-analyze', ['verify', unit])
    const about = text.split('\n').filter((line) => line.includes('strandfast.service'))
    expect(about.filter((line) => !/is not executable|Failed to resolve|network-online/.test(line))).toEqual(
      [],
    )
  })

  it('is exposed by less than 2 of 10', () => {
    const { status, text } = run('systemd-analyze', ['security', '--offline=true', '--threshold=20', unit])
    expect(text).toMatch(/Overall exposure level for strandfast\.service: [01]\.\d OK/)
    expect(status).toBe(0)
  })
})
