import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http'
import { OTLPLogExporter as ProtobufLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider, type LogRecordExporter } from '@opentelemetry/sdk-logs'
import { BatchSpanProcessor, TracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace'
import { vi } from 'vitest'
import { freePort } from './free-port.js'
import { call, startServer, type TestServer } from './server.js'

/** Delivers records with the numbers from 0 to `count` - 1. @param onSent called after each batch */
type Deliver = (count: number, onSent: () => void) => Promise<void>

/** Records that a processor exports together, by default; it drops what exceeds its queue of 2,048. */
const BATCH = 512

const resourceOf = (name: string) => resourceFromAttributes({ 'service.name': name })

async function inBatches(
  count: number,
  { emit, flush, onSent }: { emit(n: number): void; flush(): Promise<void>; onSent(): void },
): Promise<void> {
  for (let n = 0; n < count; n++) {
    emit(n)
    if ((n + 1) % BATCH !== 0 && n + 1 < count) continue
    await flush()
    onSent()
  }
}

const logs = (agent: string, exporter: LogRecordExporter): Deliver => {
  const provider = new LoggerProvider({
    resource: resourceOf(agent),
    processors: [new BatchLogRecordProcessor({ exporter })],
  })
  const logger = provider.getLogger('test')
  return async (count, onSent) => {
    const emit = (n: number) => logger.emit({ severityNumber: 9, body: `event ${n}`, attributes: { n } })
    await inBatches(count, { emit, flush: () => provider.forceFlush(), onSent })
    await provider.shutdown()
  }
}

const spans = (agent: string, exporter: SpanExporter): Deliver => {
  const provider = new TracerProvider({
    resource: resourceOf(agent),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  })
  const tracer = provider.getTracer('test')
  return async (count, onSent) => {
    const emit = (n: number) => tracer.startSpan(`call ${n}`, { attributes: { n } }).end()
    await inBatches(count, { emit, flush: () => provider.forceFlush(), onSent })
    await provider.shutdown()
  }
}

/** Milliseconds between two moves of the exporters' clock. */
const TICK_MS = 20

/**
 * Sends `count` records with each of the four exporters, which have no settings but the address and the key
 * in the environment, and kills and restarts the server in the middle. Exporters drop a batch about 7 s after
 * its first failure, so their clock stands still while the server starts: how long that takes depends on the
 * machine.
 * @returns for each agent, the number of its records and that of the different ones
 */
export async function deliverOverRestart(
  count: number,
): Promise<Record<string, [records: number, different: number]>> {
  const dataDir = mkdtempSync(join(tmpdir(), 'strandfast-'))
  const env = { SERVICE_PORT: String(await freePort()) }
  let server = await startServer({ dataDir, env })
  const before = { ...process.env }
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = server.url
  process.env['OTEL_EXPORTER_OTLP_HEADERS'] = `Authorization=Bearer%20${server.rootKey}`
  const deliveries = {
    'logs-json': logs('logs-json', new OTLPLogExporter()),
    'logs-protobuf': logs('logs-protobuf', new ProtobufLogExporter()),
    'spans-json': spans('spans-json', new OTLPTraceExporter()),
    'spans-protobuf': spans('spans-protobuf', new ProtobufTraceExporter()),
  }
  process.env = before
  const half = Math.floor((2 * count) / BATCH)
  let sent = 0
  let restarted: Promise<void> | undefined
  const restart = async () => {
    vi.setTimerTickMode('manual')
    try {
      await server.halt('SIGKILL')
      server = await startServer({ dataDir, env })
    } finally {
      vi.setTimerTickMode('interval', TICK_MS)
    }
  }
  const onSent = () => {
    sent++
    if (sent >= half) restarted ??= restart()
  }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  vi.setTimerTickMode('interval', TICK_MS)
  try {
    await Promise.all(Object.values(deliveries).map((deliver) => deliver(count, onSent)))
    await restarted
    vi.useRealTimers()
    const found = Object.keys(deliveries).map(async (agent) => {
      const numbers = await numbersOf(server, agent)
      return [agent, [numbers.length, new Set(numbers).size]] satisfies [string, [number, number]]
    })
    return Object.fromEntries(await Promise.all(found))
  } finally {
    // A server that is being started would otherwise outlive the test.
    await Promise.allSettled([restarted])
    vi.useRealTimers()
    await server.halt()
    rmSync(dataDir, { recursive: true })
  }
}

/** The attribute `n` of all records of an agent. */
async function numbersOf(server: TestServer, agent: string): Promise<string[]> {
  const { text } = await call(server, `GET /v1/strand/export?agent=${agent}`)
  return [...text.matchAll(/\\"key\\":\\"n\\",\\"value\\":\{\\"intValue\\":\\"(\d+)\\"/g)].map(
    ([, n = '']) => n,
  )
}
