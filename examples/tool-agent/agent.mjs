/**
 * A small agent whose tool calls are spans of OpenTelemetry: it reports the longest file of a folder.
 *
 *     OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:8787 OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20KEY \
 *       OTEL_SERVICE_NAME=tool-agent node examples/tool-agent/agent.mjs FOLDER
 *
 * The exporter of the SDK has its default settings. The spans follow the conventions for generative AI: one
 * `invoke_agent`, and below it one `execute_tool` for each call of a tool, with its arguments and its result.
 * Exit codes: 0 done, 1 no file could be read or the spans were not exported, 2 wrong usage.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { detectResources, envDetector } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'

const AGENT = 'longest-file'

const provider = new TracerProvider({
  resource: detectResources({ detectors: [envDetector] }),
  spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
})
const tracer = provider.getTracer('tool-agent')

/** The tools of the agent, by name. */
const tools = {
  list_files: async ({ folder }) => {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
  },
  count_lines: async ({ file }) => (await readFile(file, 'utf8')).split('\n').length - 1,
}

/** Calls a tool within a span. The arguments can contain secrets: an agent of yours may have to leave them out. */
async function callTool(context, name, given) {
  const attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.agent.name': AGENT,
    'gen_ai.tool.name': name,
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.call.id': `call_${crypto.randomUUID()}`,
    'gen_ai.tool.call.arguments': JSON.stringify(given),
  }
  const span = tracer.startSpan(`execute_tool ${name}`, { kind: SpanKind.INTERNAL, attributes }, context)
  try {
    const result = await tools[name](given)
    span.setAttribute('gen_ai.tool.call.result', JSON.stringify(result))
    return result
  } catch (error) {
    span.setAttribute('error.type', error.code ?? error.name)
    span.setStatus({ code: SpanStatusCode.ERROR, message: error.message })
    return undefined
  } finally {
    span.end()
  }
}

/** The steps of the agent, which a model would choose in another one. */
async function longestFile(context, folder) {
  const names = (await callTool(context, 'list_files', { folder })) ?? []
  let longest
  for (const name of names) {
    const lines = await callTool(context, 'count_lines', { file: join(folder, name) })
    if (lines !== undefined && (longest === undefined || lines > longest.lines)) longest = { name, lines }
  }
  return longest
}

async function main([folder]) {
  if (folder === undefined) {
    console.error('Usage: node examples/tool-agent/agent.mjs FOLDER')
    return 2
  }
  const attributes = { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': AGENT }
  const span = tracer.startSpan(`invoke_agent ${AGENT}`, { kind: SpanKind.INTERNAL, attributes })
  const longest = await longestFile(trace.setSpan(ROOT_CONTEXT, span), folder)
  span.end()
  console.log(`Trace ${span.spanContext().traceId}`)
  console.log(longest === undefined ? 'No file' : `${longest.name} has the most lines: ${longest.lines}`)
  await provider.shutdown()
  return longest === undefined ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2)).catch((error) => {
  console.error(`Not exported: ${error.message}`)
  return 1
})
