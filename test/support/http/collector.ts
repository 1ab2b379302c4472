import type { JsonObject } from '@bufbuild/protobuf'

/*
 * The bodies of two requests of a Collector, as its exporter `otlphttp` sends them: gzip of the messages
 * ExportLogsServiceRequest and ExportTraceServiceRequest. They were written with Google's library for
 * protobuf from the Python package opentelemetry-proto, version 1.45.0, and so independently of the server.
 */

export const collectorLogs = Buffer.from(
  'H4sIAAAAAAACA2WRvS8EURTF52M3u64N4wVZK2RVRPFm9lHINgrRaCTbCKpn9tqZmHlvMvMW2/hKtDqJROMP0Gg0NCKhUal0Pv4A' +
    'Ld0asjROee65J7m/C1cmUChBIcF403eRCh4iAci7HrobsqnAgpwnE0X9OslWTa1tkWcDJmCkIamMUCgMMEQVt6gvbVcGAbpKxiTn' +
    '0Mq0Qx1ybHTpzvPD1vV90eorZedrtcXa5DAMrXAvaIpGma810gZPqGq5wspvB+dsEHK+UDT0Beku7v1KZwMdn28TKLY72mUEslue' +
    'DJB0jWlnT4dL05tzrA8yHg/Wv60fvcwyC0zBxZ/zucvyYAhJDEtj3ZDFMFItYoDGRiET+Ikig5P9YBR16GEFAMjUEaM0rKdrGSEF' +
    'Em3GnNfTpgVr9aj9cWLum4/+5dT+7F2hln9/Pd25vblQy0bn9LXeiLfClBaNcb2ZYJ1opSFPqSip2jZu8zAKkMq4YSduCrU0/jv6' +
    'RzhJ/xLyxK7QqRnqfAF4M1EAvgEAAA==',
  'base64',
)

export const collectorSpans = Buffer.from(
  'H4sIAAAAAAACA+M6xcglwyXFxVOcWlSWmZyql5eYmyrExcWRnJGanJ1fWiK0kpGLnYu1JD8/p1hoLiOXQHTf/+8zmBuZL2VuM260' +
    'P8YjxPHu4ey6wwc3lkgxJ9oaKsG4xVrCqRWpyaUlqfEgzQrFqYlFyRkGzJYMBvfPlO85LuHY8OjobRAjSoSTQfDqJRBTiDO1Ijm1' +
    'oCQzPy9LhkuAAQVw7RHigLB431fxCnGWZOampigA3SjB1MrIyMjAAACZq/tdzQAAAA==',
  'base64',
)

const traceId = '5b8efff798038103d269b633813fc60c'

const around: JsonObject = {
  resource: {
    attributes: [
      { key: 'service.name', value: { stringValue: 'checkout' } },
      { key: 'host.id', value: { bytesValue: 'AP8Q' } },
    ],
  },
  resourceSchemaUrl: 'https://opentelemetry.io/schemas/1.38.0',
  scope: { name: 'go.opentelemetry.io/collector', version: '0.140.0' },
  scopeSchemaUrl: 'https://example.org/scope',
}

/** The records that `collectorLogs` becomes: one with every member, and an empty one. */
export const collectorLogRecords: readonly JsonObject[] = [
  {
    timeUnixNano: '1785603000000000001',
    observedTimeUnixNano: '1785603000000000002',
    severityNumber: 17,
    severityText: 'ERROR',
    body: { stringValue: 'Zahlung abgelehnt: 12 €' },
    attributes: [
      { key: 'int.min', value: { intValue: '-9223372036854775808' } },
      { key: 'int.max', value: { intValue: '9223372036854775807' } },
      { key: 'whole', value: { doubleValue: 1e17 } },
      { key: 'half', value: { doubleValue: 0.5 } },
      { key: 'nan', value: { doubleValue: 'NaN' } },
      { key: 'no', value: { boolValue: false } },
      { key: 'empty', value: { stringValue: '' } },
      {
        key: 'list',
        value: {
          arrayValue: {
            values: [
              { intValue: '1' },
              { kvlistValue: { values: [{ key: 'deep', value: { boolValue: true } }] } },
            ],
          },
        },
      },
      { key: 'none', value: {} },
    ],
    droppedAttributesCount: 3,
    flags: 1,
    traceId,
    spanId: 'eee19b7ec3c1b174',
    eventName: 'payment.refused',
    ...around,
  },
  around,
]

/** The record that `collectorSpans` becomes. */
export const collectorSpan: JsonObject = {
  traceId,
  spanId: 'eee19b7ec3c1b174',
  parentSpanId: 'eee19b7ec3c1b173',
  traceState: 'a=1',
  flags: 257,
  name: 'execute_tool search',
  kind: 3,
  startTimeUnixNano: '1785603000000000000',
  endTimeUnixNano: '1785603000250000000',
  events: [{ timeUnixNano: '1785603000100000000', name: 'exception' }],
  links: [{ traceId: '00000000000000000000000000000abc', spanId: '0000000000000def' }],
  status: { message: 'timed out', code: 2 },
  resource: { attributes: [{ key: 'service.name', value: { stringValue: 'checkout' } }] },
  scope: { name: 'tools' },
}
