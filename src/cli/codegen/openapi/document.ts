import type { DescFile, DescService, JsonObject } from '@bufbuild/protobuf'
import { type Annotations, description, readAnnotations } from './annotations.ts'
import { errorSchema, HEADER_COMPONENTS, RESPONSE_COMPONENTS, reasonSchema } from './errors.ts'
import { operation, PARAMETER_COMPONENTS } from './operation.ts'
import { CALL_PARAMETERS, rawPathItems } from './raw-endpoints.ts'
import { createSchemaBook, type SchemaBook } from './schemas.ts'
import { UNIFIED_PARAMETERS, unifiedPathItems } from './unified-endpoints.ts'

const PRODUCT_PACKAGE = /^patchbay\./

const INFO: JsonObject = {
  title: 'Patchbay',
  version: 'v1',
  description: [
    'Third-party APIs as data, accounts that stay authorised, and syncs on a schedule.',
    'Fields are snake_case; lowerCamelCase is accepted too, an unknown field is not. Null and absence are the same: not given. In answers numbers, texts, flags and lists are always present, also when empty.',
    'The same operations are served by gRPC, gRPC-Web and Connect at the same address.',
  ].join('\n\n'),
}

const SECURITY_SCHEMES: JsonObject = {
  token: {
    type: 'http',
    scheme: 'bearer',
    description:
      'An API token. One of kind `environment` is bound to one environment; one of kind `team` administers the team and names an environment with the header `patchbay-environment`.',
  },
  link: {
    type: 'http',
    scheme: 'bearer',
    description: 'A link token (`POST /link-token`), until its link has ended.',
  },
}

/**
 * The OpenAPI 3.1 document of the product's services among `files`.
 *
 * `allFiles` holds these and everything they import: annotations and error details are looked up there. Services of
 * other packages and RPCs without a REST binding are left out; addresses without an RPC are added.
 */
export function openApiDocument(files: readonly DescFile[], allFiles: readonly DescFile[]): JsonObject {
  const annotations = readAnnotations(allFiles)
  const book = createSchemaBook(annotations)
  const services = files
    .flatMap((file) => file.services)
    .filter((service) => PRODUCT_PACKAGE.test(service.typeName))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
  const paths = {
    ...pathItems(services, annotations, book),
    ...rawPathItems(allFiles, book),
    ...unifiedPathItems(allFiles, book),
  }
  const error = errorSchema(allFiles, book)
  return {
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: services.map((service) => ({ name: service.name, description: description(service) })),
    paths,
    components: {
      schemas: sorted({ ...book.schemas, Error: error, ErrorReason: reasonSchema(allFiles) }),
      parameters: { ...PARAMETER_COMPONENTS, ...CALL_PARAMETERS, ...UNIFIED_PARAMETERS },
      headers: HEADER_COMPONENTS,
      responses: RESPONSE_COMPONENTS,
      securitySchemes: SECURITY_SCHEMES,
    },
  }
}

function pathItems(services: readonly DescService[], annotations: Annotations, book: SchemaBook): JsonObject {
  const items = new Map<string, JsonObject>()
  for (const method of services.flatMap((service) => service.methods)) {
    const binding = annotations.httpBinding(method)
    if (!binding) continue
    const item = items.get(binding.path) ?? {}
    item[binding.verb] = operation(method, binding, annotations, book)
    items.set(binding.path, item)
  }
  return Object.fromEntries(items)
}

function sorted(schemas: Readonly<Record<string, JsonObject>>): JsonObject {
  return Object.fromEntries(Object.entries(schemas).sort(([one], [other]) => (one < other ? -1 : 1)))
}
