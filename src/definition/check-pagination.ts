import { type DotPath, isJsonObject, type Json, type JsonObject, type Violation } from '../base/index.ts'
import { listPlaceholderPaths } from '../expression/index.ts'
import { writePath } from './json-path.ts'

/** The key under which a format sends its position. */
const POSITION_KEYS: Readonly<Record<string, string>> = { page: 'page_key', offset: 'offset_key', cursor: 'cursor_key' }

/**
 * Paginations that would ask for the first page again and again: no key to send the position under, and no
 * `{{pagination.…}}` in the config that places it.
 */
export function findKeylessPaginations(config: JsonObject, path: string): Violation[] {
  if (listPlaceholderPaths(config).some(({ root }) => root === 'pagination')) return []
  return listPaginations(config).flatMap(({ value, path: at }) => {
    const key = missingKey(value)
    if (key === undefined) return []
    const description = `is required, unless a template of the definition places {{pagination.${value.format}}} itself`
    return [{ field: writePath(path, [...at, 'config', key]), description, rule: 'pagination.key_missing' }]
  })
}

function missingKey({ format, config }: JsonObject): string | undefined {
  const key = POSITION_KEYS[String(format)]
  if (key === undefined) return undefined
  const settings = isJsonObject(config) ? config : {}
  return settings[key] === undefined && settings.is_link !== true ? key : undefined
}

interface PaginationAt {
  readonly value: JsonObject
  readonly path: DotPath
}

function listPaginations(config: JsonObject): PaginationAt[] {
  const methods = entriesOf(config.resources).flatMap(([resource, methodMap]) =>
    entriesOf(methodMap).map(([name, method]) => [method, ['resources', resource, name]] as const),
  )
  return [[config, []] as const, ...methods].flatMap(([owner, path]) => {
    const value = isJsonObject(owner) ? owner.pagination : undefined
    return isJsonObject(value) ? [{ value, path: [...path, 'pagination'] }] : []
  })
}

function entriesOf(value: Json | undefined): [string, Json][] {
  return isJsonObject(value) ? Object.entries(value) : []
}
