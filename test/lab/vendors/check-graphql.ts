import { createRequire } from 'node:module'
import { isJsonObject } from '../../../src/foundation/json/index.ts'
import type { GoldenRequest } from '../../unit/engine/catalog/golden-file.ts'

interface GraphqlLibrary {
  buildSchema(text: string): object
  parse(text: string): {
    readonly definitions: readonly { readonly kind: string; readonly variableDefinitions?: readonly object[] }[]
  }
  validate(schema: object, document: object): readonly { readonly message: string }[]
  getVariableValues(
    schema: object,
    definitions: readonly object[],
    values: object,
  ): { readonly errors?: readonly { readonly message: string }[] }
}

/** Compares requests with a GraphQL schema: the query as a whole, and the values of its variables. */
export function graphqlCheck(schemaText: string): (request: GoldenRequest) => string[] {
  const { buildSchema, parse, validate, getVariableValues } = createRequire(import.meta.url)(
    'graphql',
  ) as GraphqlLibrary
  const schema = buildSchema(schemaText)
  return ({ body }) => {
    if (!isJsonObject(body) || typeof body.query !== 'string') return ['operation unknown']
    const document = parse(body.query)
    const problems = validate(schema, document)
    if (problems.length > 0) return problems.map(({ message }) => `query: ${message}`)
    const [operation] = document.definitions
    const { errors = [] } = getVariableValues(
      schema,
      operation?.variableDefinitions ?? [],
      Object(body.variables ?? {}),
    )
    return errors.map(({ message }) => `variables: ${message}`)
  }
}
