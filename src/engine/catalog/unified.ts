import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type JsonObject, parseJson } from '../../foundation/json/index.ts'

const FOLDER = join(import.meta.dirname, 'unified')
const EXTENSION = '.json'

/** The names of the shipped unified models, sorted: one per file of `unified/models/`. */
export const SHIPPED_MODEL_NAMES: readonly string[] = namesIn(join(FOLDER, 'models'))

const INTEGRATIONS = new Map(SHIPPED_MODEL_NAMES.map((model) => [model, namesIn(join(FOLDER, 'mappings', model))]))
const documents = new Map<string, JsonObject>()

/** The document of a shipped model: `{name, label, description, resources}`. Read once. */
export function findShippedModel(name: string): JsonObject | undefined {
  return SHIPPED_MODEL_NAMES.includes(name) ? documentAt(`models/${name}`) : undefined
}

/** The integrations that a shipped model has mappings for, by their names, sorted. */
export function listMappedIntegrations(model: string): readonly string[] {
  return INTEGRATIONS.get(model) ?? []
}

/** The document of a shipped mapping: `{model, integration, resources: {<resource>: {<method or *>: config}}}`. Read once. */
export function findShippedMapping(model: string, integration: string): JsonObject | undefined {
  return listMappedIntegrations(model).includes(integration)
    ? documentAt(`mappings/${model}/${integration}`)
    : undefined
}

/** @param path of a file that exists: names of requests are compared with the files before they become a path */
function documentAt(path: string): JsonObject {
  const document =
    documents.get(path) ?? (parseJson(readFileSync(join(FOLDER, path + EXTENSION), 'utf8')) as JsonObject)
  documents.set(path, document)
  return document
}

function namesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => file.endsWith(EXTENSION))
    .map((file) => file.slice(0, -EXTENSION.length))
    .sort()
}
