/**
 * Writes src/otlp/descriptors.ts from the descriptors that protoc makes of the .proto files of
 * open-telemetry/opentelemetry-proto (Apache-2.0): `node scripts/make-otlp-schema.mjs FOLDER`, where FOLDER
 * is the unpacked Python package `opentelemetry-proto`.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const files = ['common/v1/common', 'resource/v1/resource', 'logs/v1/logs', 'trace/v1/trace']

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error('Expected the folder of the unpacked package')
  process.exit(78)
}

/** Reads the literal of bytes in a module of Python, without running the module. */
const readDescriptor = `
import ast, base64, sys
for node in ast.walk(ast.parse(sys.stdin.read())):
    if isinstance(node, ast.Call) and getattr(node.func, 'attr', '') == 'AddSerializedFile':
        print(base64.b64encode(node.args[0].value).decode())
`

const texts = files.map((file) => {
  const module = readFileSync(join(folder, 'opentelemetry/proto', `${file}_pb2.py`), 'utf8')
  const base64 = execFileSync('python3', ['-c', readDescriptor], { input: module, encoding: 'utf8' }).trim()
  const lines = base64.match(/.{1,100}/g) ?? []
  return `  // ${file}.proto\n${lines.map((line, at) => `  ${at === 0 ? '' : '  '}'${line}'`).join(' +\n')},`
})
const text = `// Made from the Python package opentelemetry-proto by scripts/make-otlp-schema.mjs. Change it there.

/** The descriptors of the OTLP messages, base64: a FileDescriptorProto per file, after those it imports. */
export const otlpDescriptors = [
${texts.join('\n')}
]
`
writeFileSync(new URL('../src/otlp/descriptors.ts', import.meta.url), text)
