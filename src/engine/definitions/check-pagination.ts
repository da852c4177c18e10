import type { Violation } from '../../foundation/base/index.ts'
import { type DotPath, formatDotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { findFilteredList } from '../expressions/list-filter.ts'
import { listPlaceholderPaths } from '../expressions/template.ts'

/** The setting that names the parameter for the position, by format. */
const POSITION_KEYS: Readonly<Record<string, string>> = { page: 'page_key', offset: 'offset_key', cursor: 'cursor_key' }

/**
 * Paginations that would request the first page forever: no parameter for the position, and no `{{pagination.…}}` in the
 * config.
 */
export function findKeylessPaginations(config: JsonObject, path: string): Violation[] {
  if (listPlaceholderPaths(config).some(({ root }) => root === 'pagination')) return []
  return listPaginations(config).flatMap(({ value, path: at }) => {
    const key = missingKey(value)
    if (key === undefined) return []
    const description = `is required, unless a template of the definition places {{pagination.${value.format}}} itself`
    return [{ field: formatDotPath([...at, 'config', key], path), description, rule: 'pagination.key_missing' }]
  })
}

function missingKey({ format, config }: JsonObject): string | undefined {
  const key = POSITION_KEYS[String(format)]
  if (key === undefined) return undefined
  const settings = isJsonObject(config) ? config : {}
  return settings[key] === undefined && settings.is_link !== true ? key : undefined
}

/** Formats that end at an empty page by default. */
const ENDED_BY_EMPTY: ReadonlySet<string> = new Set(['page', 'offset', 'range'])

/**
 * Lists that would end silently at the first page whose records are all filtered out: `response_path` filters a computed
 * list, so that the number of entries of the upstream is not known.
 */
export function findHiddenEmptyPages(config: JsonObject, path: string): Violation[] {
  return listMethods(config).flatMap(({ method, path: at }) => {
    const { response_path, pagination = config.pagination } = method
    if (typeof response_path !== 'string' || !response_path.startsWith('$')) return []
    if (!isJsonObject(pagination) || !endsByLength(pagination)) return []
    const list = findFilteredList(response_path)
    if (list.kind !== 'filtered' || list.source !== undefined) return []
    const description =
      'filters a list that it computes, and a page whose records are all left out would end the listing: write the condition at the list, as in $.results[active], or set stop_on_empty to false beside another rule'
    return [{ field: formatDotPath([...at, 'response_path'], path), description, rule: 'pagination.hidden_empty_page' }]
  })
}

function endsByLength({ format, config }: JsonObject): boolean {
  const settings = isJsonObject(config) ? config : {}
  const stopsOnEmpty = settings.stop_on_empty ?? ENDED_BY_EMPTY.has(String(format))
  return stopsOnEmpty === true || settings.stop_on_short === true
}

interface PaginationAt {
  readonly value: JsonObject
  readonly path: DotPath
}

function listPaginations(config: JsonObject): PaginationAt[] {
  return [{ method: config, path: [] }, ...listMethods(config)].flatMap(({ method: { pagination }, path }) =>
    isJsonObject(pagination) ? [{ value: pagination, path: [...path, 'pagination'] }] : [],
  )
}

interface MethodAt {
  readonly method: JsonObject
  readonly path: DotPath
}

function listMethods(config: JsonObject): MethodAt[] {
  return entriesOf(config.resources).flatMap(([resource, methods]) =>
    entriesOf(methods).flatMap(([name, method]) =>
      isJsonObject(method) ? [{ method, path: ['resources', resource, name] }] : [],
    ),
  )
}

function entriesOf(value: Json | undefined): [string, Json][] {
  return isJsonObject(value) ? Object.entries(value) : []
}
