import { Failure } from '../../../foundation/base/index.ts'
import type { UnifiedMethodRef } from '../../../platform/unified-config/index.ts'
import { decodeSegment } from './proxy-path.ts'

/** The unified method that path and verb of a call name. */
export type UnifiedPath =
  | { readonly kind: 'target'; readonly ref: UnifiedMethodRef; readonly id: string | undefined }
  | { readonly kind: 'other_verb'; readonly allow: readonly string[] }

/** Prefix of the paths of calls of unified resources. */
export const UNIFIED_PREFIX = '/unified/'

/** Verbs of calls. */
export const UNIFIED_VERBS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Methods of the verbs on `/unified/{model}/{resource}` and `/unified/{model}/{resource}/{id}`. */
const METHODS_OF_RESOURCE: Readonly<Record<string, string>> = { GET: 'list', POST: 'create' }
const METHODS_OF_RECORD: Readonly<Record<string, string>> = {
  GET: 'get',
  PUT: 'update',
  PATCH: 'update',
  DELETE: 'delete',
}

/**
 * Reads `{model}/{resource}`, `{model}/{resource}/{id}`, and for POST `{model}/{resource}/{method}` and
 * `{model}/{resource}/{id}/{method}`.
 *
 * @param verb HEAD is to be given as GET
 * @param path the part after `UNIFIED_PREFIX`, without query
 * @throws Failure ROUTE_NOT_FOUND for any other path, INVALID_FIELD for one that is not percent-encoded
 */
export function parseUnifiedPath(verb: string, path: string): UnifiedPath {
  const [model = '', resource = '', third, fourth, ...more] = path.split('/').map(decodeSegment)
  if (model === '' || resource === '' || third === '' || fourth === '' || more.length > 0)
    throw new Failure(
      'ROUTE_NOT_FOUND',
      'unified resources are at /unified/{model}/{resource}, /{model}/{resource}/{id} and POST /{model}/{resource}/{method}',
    )
  const target = (method: string, id?: string) => ({ kind: 'target', ref: { model, resource, method }, id }) as const
  if (fourth !== undefined) return verb === 'POST' ? target(fourth, third) : { kind: 'other_verb', allow: ['POST'] }
  if (third !== undefined && verb === 'POST') return target(third)
  const methods = third === undefined ? METHODS_OF_RESOURCE : METHODS_OF_RECORD
  const method = methods[verb]
  return method === undefined ? { kind: 'other_verb', allow: Object.keys(methods) } : target(method, third)
}

/** Verbs that a path below `UNIFIED_PREFIX` takes, by its form alone. */
export function verbsOfUnifiedPath(path: string): readonly string[] {
  switch (path.split('/').length) {
    case 4:
      return ['POST']
    case 3:
      return UNIFIED_VERBS
    default:
      return Object.keys(METHODS_OF_RESOURCE)
  }
}
