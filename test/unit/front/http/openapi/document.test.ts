import { Validator } from '@seriousme/openapi-schema-validator'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { errorCatalogue } from '../../../../../src/base/errors.js'
import { openApiDocument, operationIdOf } from '../../../../../src/front/http/openapi/document.js'
import { allRoutes } from '../../../../../src/front/routes/routes.js'
import { documentedSchemas } from '../../../../../src/wire/documented.js'
import { WriteResponse } from '../../../../../src/wire/records.js'

const routes = allRoutes('default')

/** The document as a client reads it: serialized to JSON and parsed. */
const document = JSON.parse(JSON.stringify(openApiDocument(routes, '1.2.3')))
const operationIds = routes.map(operationIdOf)
const counterparts = routes.filter((route) => route.kind === 'auth' && route.organism === 'initialised')

function operationOf(method: string, path: string) {
  const item = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]
  const operation = item?.[method === 'del' ? 'delete' : method]
  expect(operation, `${method} ${path}`).toBeDefined()
  return operation
}

/** Every object in the document, with its JSON pointer. */
function* objectsIn(value: unknown, pointer = '#'): Generator<[pointer: string, object: object]> {
  if (typeof value !== 'object' || value === null) return
  yield [pointer, value]
  for (const [key, member] of Object.entries(value)) yield* objectsIn(member, `${pointer}/${key}`)
}

// The target of a reference can have any shape.
// oxlint-disable-next-line no-explicit-any
function resolved(reference: string): any {
  let at: unknown = document
  for (const part of reference.slice(2).split('/')) {
    if (typeof at !== 'object' || at === null) return undefined
    at = Reflect.get(at, decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
  }
  return at
}

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const result = await new Validator().validate(structuredClone(document))
    expect(result.errors).toBeUndefined()
    expect(result.valid).toBe(true)
  })

  it('is invalid with a broken operation, so the check above can fail', async () => {
    const broken = structuredClone(document)
    broken.paths['/v1/agents'].get.parameters = [{ name: 'limit' }]
    expect((await new Validator().validate(broken)).valid).toBe(false)
  })

  it('contains the version of the server', () => {
    expect(document.info).toMatchObject({ title: 'Strandfast', version: '1.2.3' })
  })

  it('has every route, with its scope and its summary, and no other', () => {
    for (const route of routes) {
      const { method, path, docs, scope } = route
      const admin = path.startsWith('/v1/organisms/') ? 'admin:organisms' : 'admin:*'
      const authScopes = { anyone: 'none', user: 'user', admin }
      expect(operationOf(method, path)).toMatchObject({
        summary: docs.summary,
        'x-scope': route.kind === 'auth' ? authScopes[route.caller] : scope,
        tags: [docs.tag],
      })
    }
    const items = Object.values<object>(document.paths)
    expect(items.reduce((sum, item) => sum + Object.keys(item).length, 0)).toBe(routes.length)
  })

  it('describes each route of an organism’s namespace in full, because type generators ignore siblings of a $ref of a path', () => {
    expect(counterparts.length).toBeGreaterThan(20)
    for (const { method, path } of counterparts) {
      const counterpart = operationOf(method, path)
      const root = operationOf(method, path.replace('/organisms/:organism_id', ''))
      expect(counterpart).toMatchObject({ summary: root.summary, 'x-twin-of': root.operationId })
      expect(counterpart.requestBody).toEqual(root.requestBody)
      expect(counterpart.parameters).toContainEqual({ $ref: '#/components/parameters/organism_id' })
    }
  })

  it('describes the default of an optional member only in words, because type generators would require the member', () => {
    const optional = [...objectsIn(document)].flatMap(([pointer, object]) => {
      if (!('properties' in object) || !('type' in object) || object.type !== 'object') return []
      const required = 'required' in object && Array.isArray(object.required) ? object.required : []
      return Object.entries<object>(Object(object.properties))
        .filter(([name]) => !required.includes(name))
        .map(([name, member]) => ({ path: `${pointer}/${name}`, member }))
    })
    expect(optional.filter(({ member }) => 'default' in member).map(({ path }) => path)).toEqual([])
    expect(document.components.schemas.RecordWriteBody.properties.type.description).toContain(
      'default `"record"`',
    )
  })

  it('gives each operation a unique id', () => {
    expect(operationIds.filter((id, index) => operationIds.indexOf(id) !== index)).toEqual([])
    expect(operationIds.filter((id) => !/^[a-z][A-Za-z0-9]+$/.test(id))).toEqual([])
  })

  it('describes every tag', () => {
    const described = document.tags.filter((tag: { description?: string }) => tag.description !== undefined)
    const names = described.map((tag: { name: string }) => tag.name)
    expect(routes.filter((route) => !names.includes(route.docs.tag)).map((route) => route.docs.tag)).toEqual(
      [],
    )
  })

  it('has a target for every $ref', () => {
    const references = [...objectsIn(document)].flatMap(([pointer, object]) =>
      '$ref' in object && typeof object.$ref === 'string' ? [[pointer, object.$ref] as const] : [],
    )
    expect(references.length).toBeGreaterThan(100)
    expect(references.filter(([, target]) => resolved(target) === undefined)).toEqual([])
  })

  it('names each parameter of a path', () => {
    for (const { method, path } of routes) {
      const { parameters = [] } = operationOf(method, path)
      const inPath = parameters
        .map((entry: { $ref?: string }) => (entry.$ref === undefined ? entry : resolved(entry.$ref)))
        .filter((entry: { in: string }) => entry.in === 'path')
      const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1])
      expect(inPath.map((entry: { name: string }) => entry.name)).toEqual(names)
    }
  })

  it('contains the validating schemas of the wire', () => {
    expect(document.components.schemas.WriteResponse.properties.seq).toEqual(
      JSON.parse(JSON.stringify(WriteResponse.properties.seq)),
    )
    expect(operationOf('post', '/v1/agents').requestBody.content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/AgentCreateBody',
    })
  })
})

describe('the schemas', () => {
  it('compile for all answers and requests', () => {
    const schemas = routes.flatMap(({ docs }) => [...Object.values(docs.answers), docs.request])
    const compiled = schemas.flatMap((schema) =>
      schema === undefined || 'mediaType' in schema ? [] : [Compile(schema).Check({})],
    )
    expect(compiled.length).toBeGreaterThan(15)
  })

  it.each([...documentedSchemas])('match the examples of %s', (_name, { schema, examples }) => {
    const faults = Object.entries(examples).flatMap(([key, value]) =>
      [...Compile(schema).Errors(value)].map((error) => `${key}${error.instancePath}: ${error.message}`),
    )
    expect(faults).toEqual([])
  })
})

describe('the errors of an operation', () => {
  const statuses = (method: string, path: string) => Object.keys(operationOf(method, path).responses)

  it('always have a default', () => {
    for (const { method, path } of routes) expect(statuses(method, path)).toContain('default')
  })

  it('include 401 and 403 exactly if a key is needed', () => {
    for (const { method, path, scope, kind } of routes) {
      if (kind === 'auth') continue
      expect(statuses(method, path).includes('401')).toBe(scope !== 'none')
      expect(statuses(method, path).includes('403')).toBe(scope !== 'none')
    }
  })

  it('include 402 exactly on auth routes, and 401 on those that need a credential', () => {
    for (const route of routes) {
      const found = statuses(route.method, route.path)
      expect(found.includes('402'), route.path).toBe(route.kind === 'auth')
      if (route.kind === 'auth' && route.caller !== 'anyone') expect(found, route.path).toContain('401')
    }
  })

  it('use 400 for a token in the body and 401 for a token as the credential', () => {
    const codesAt = (path: string, status: string): string[] => {
      const { $ref } = operationOf('post', path).responses[status] ?? { $ref: '' }
      return $ref.split('/').at(-1).split('-or-')
    }
    expect(codesAt('/v1/auth/verify-email', '400')).toContain('invalid_token')
    expect(codesAt('/v1/auth/password/reset', '400')).toContain('invalid_token')
    expect(statuses('post', '/v1/auth/verify-email')).not.toContain('401')
    expect(codesAt('/v1/auth/magic-link/verify', '401')).toEqual(['invalid_token'])
    const { examples } = resolved(operationOf('post', '/v1/auth/verify-email').responses['400'].$ref).content[
      'application/problem+json'
    ]
    expect(examples.invalid_token.value).toMatchObject({ status: 400, code: 'invalid_token' })
  })

  it('name the codes that apply', () => {
    const { $ref } = operationOf('post', '/v1/agents').responses['409']
    expect($ref).toBe('#/components/responses/agent_exists-or-key_in_use')
    expect(statuses('delete', '/v1/agents/:agent/records/:hash')).toEqual(
      expect.arrayContaining(['400', '404', '409', '412', '422', '429', '507']),
    )
  })

  it('are listed as a whole', () => {
    expect(document['x-error-catalogue']).toHaveLength(Object.keys(errorCatalogue).length)
  })
})

it('marks as required only query parameters that the operation has', () => {
  const unknown = routes.flatMap(({ docs, path }) =>
    (docs.required ?? []).flatMap((name) => (docs.query?.[name] === undefined ? [`${path} ${name}`] : [])),
  )
  expect(unknown).toEqual([])
  expect(routes.flatMap(({ docs }) => docs.required ?? []).length).toBeGreaterThan(5)
})

it('contains every named schema under exactly one name', () => {
  expect(documentedSchemas.size).toBeGreaterThan(80)
  expect(Object.keys(document.components.schemas).toSorted()).toEqual(
    [...documentedSchemas.keys()].toSorted(),
  )
  const texts = [...documentedSchemas.values()].map(({ schema }) => JSON.stringify(schema))
  expect(texts.filter((text, index) => texts.indexOf(text) !== index)).toEqual([])
})
