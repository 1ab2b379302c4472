/** An example of how a program writes a record. */
interface WriteExample {
  name: string
  text: string
}

/**
 * Examples of how to write a record to a collection, to be copied.
 * @param url the URL of the service without a slash at its end
 */
export function writeExamples(url: string, collection: string): WriteExample[] {
  const records = `${url}/v1/collections/${collection}/records`
  return [
    {
      name: 'curl',
      text: `curl ${records} \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"data": {"celsius": 21.5}}'`,
    },
    {
      name: 'JavaScript',
      text: `import { ServiceClient } from '@strandfast/client'

const service = new ServiceClient({ url: '${url}', apiKey: process.env.KEY })
await service.collection('${collection}').write({ celsius: 21.5 })`,
    },
    {
      name: 'Python',
      text: `import json, os, urllib.request

request = urllib.request.Request(
    "${records}",
    data=json.dumps({"data": {"celsius": 21.5}}).encode(),
    headers={"Authorization": "Bearer " + os.environ["KEY"], "Content-Type": "application/json"},
)
print(urllib.request.urlopen(request).read().decode())`,
    },
    {
      name: 'Vector',
      text: `[sinks.strandfast]
type = "http"
inputs = ["logs"]
uri = "${url}/v1/ingest/${collection}?on_error=keep&dedupe=body"
method = "post"
compression = "gzip"
encoding.codec = "json"
auth.strategy = "bearer"
auth.token = "KEY"
acknowledgements.enabled = true`,
    },
    {
      name: 'OpenTelemetry',
      text: `exporters:
  otlphttp:
    logs_endpoint: ${url}/v1/ingest/${collection}?dedupe=body
    encoding: json
    headers:
      Authorization: Bearer KEY`,
    },
  ]
}
