import { existsSync } from 'node:fs'
import {
  findShippedDefinition,
  findShippedMapping,
  findShippedModel,
  listMappedIntegrations,
  SHIPPED_MODEL_NAMES,
} from '../../engine/catalog/index.ts'
import { type MappingFixture, parseFixture, parseModel, type UnifiedModel } from '../../engine/unified/index.ts'
import { suggestOneOf } from '../../foundation/base/index.ts'
import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import { type MappingDocument, readMappingDocument } from '../../platform/unified-config/index.ts'
import type { Invocation } from './command.ts'
import { FileError, readDefinition, readJsonFile } from './definition-file.ts'

/** A mapping file with what it is checked against. */
export interface MappingFile {
  readonly mapping: MappingDocument
  /** Name of the integration. */
  readonly integration: string
  /** Config of the integration; absent: neither given nor shipped. */
  readonly definition: JsonObject | undefined
}

/**
 * Reads a mapping: a file, or `<model>/<integration>` of a shipped one.
 *
 * @param options `model`: a file with its model, instead of the shipped one that it names; `definition`: of its integration, a
 *   file or the name of a shipped one
 * @throws FileError; Failure DEFINITION_INVALID with what is wrong with the model
 */
export function readMappingFile(argument: string, options: Invocation['options']): MappingFile {
  const document = readDocument(argument)
  const integration = typeof document.integration === 'string' ? document.integration : ''
  const definition =
    options.definition === undefined
      ? findShippedDefinition(integration)?.config
      : readDefinition(options.definition).config
  return { mapping: readMappingDocument(document, readModel(document, options.model)), integration, definition }
}

function readDocument(argument: string): JsonObject {
  const [, model, integration] = /^([a-z0-9_]+)\/([a-z0-9_-]+)$/.exec(argument) ?? []
  if (model === undefined || integration === undefined) return readJsonFile(argument)
  const shipped = findShippedMapping(model, integration)
  if (shipped !== undefined) return shipped
  if (existsSync(argument)) return readJsonFile(argument)
  const known = SHIPPED_MODEL_NAMES.flatMap((name) => listMappedIntegrations(name).map((each) => `${name}/${each}`))
  const ofModel = known.filter((name) => name.startsWith(`${model}/`))
  throw new FileError(
    `there is no file and no shipped mapping ${argument}${suggestOneOf(argument, ofModel.length === 0 ? known : ofModel)}`,
  )
}

function readModel({ model }: JsonObject, file: string | undefined): UnifiedModel {
  const name = typeof model === 'string' ? model : ''
  if (file !== undefined) return parseModel({ ...readJsonFile(file), name })
  const shipped = findShippedModel(name)
  if (shipped !== undefined) return parseModel(shipped)
  throw new FileError(
    `there is no shipped model ${name}, whose file --model would give${suggestOneOf(name, SHIPPED_MODEL_NAMES)}`,
  )
}

/** A case of a fixture file. */
export interface NamedFixture {
  readonly resource: string
  readonly name: string
  readonly fixture: MappingFixture
}

/**
 * Reads the cases of a fixture file, `{<resource>: {<case>: {method, exchanges, …}}}`.
 *
 * @param only a case, `<resource>/<name>`, or a resource; absent: all
 * @throws FileError when there is none; Failure INVALID_FIELD
 */
export function readFixtureFile(file: string, only: string | undefined): readonly NamedFixture[] {
  const cases = Object.entries(readJsonFile(file)).flatMap(([resource, byName]) =>
    Object.entries(isJsonObject(byName) ? byName : {}).map(([name, fixture]) => ({ resource, name, fixture })),
  )
  const wanted = cases.filter(
    ({ resource, name }) => only === undefined || only === resource || only === `${resource}/${name}`,
  )
  if (wanted.length === 0) {
    const names = cases.flatMap(({ resource, name }) => [resource, `${resource}/${name}`])
    throw new FileError(`${file} has no case ${only ?? ''}${suggestOneOf(only ?? '', names)}`)
  }
  return wanted.map((each) => ({ ...each, fixture: parseFixture(each.fixture, `${each.resource}.${each.name}`) }))
}
