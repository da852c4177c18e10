import type { CallTarget } from '../../../engine/proxy/index.ts'
import { Failure, invalidFields } from '../../../foundation/base/index.ts'
import { findUnstorableText } from '../../../foundation/json/index.ts'
import { namedTarget } from '../services/proxy.convert.ts'

/** The target that path and verb of a call name. */
export type ProxyPath =
  | {
      readonly kind: 'target'
      readonly target: CallTarget
      readonly id: string | undefined
      /** Verbs that the path takes if the definition has no such method. */
      readonly otherVerbs?: readonly string[]
    }
  | { readonly kind: 'other_verb'; readonly allow: readonly string[] }

/** Prefix of the paths of all described calls. */
export const PROXY_PREFIX = '/proxy/'

/** Verbs of calls. */
export const PROXY_VERBS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Placeholder for the id of a call without one; as a resource, for the actions of the definition. */
const NO_ID = '_'

/** Methods of the verbs on `/proxy/{resource}` and `/proxy/{resource}/{id}`. */
const METHODS_OF_RESOURCE: Readonly<Record<string, string>> = { GET: 'list', POST: 'create' }
const METHODS_OF_RECORD: Readonly<Record<string, string>> = {
  GET: 'get',
  PUT: 'update',
  PATCH: 'update',
  DELETE: 'delete',
}

/**
 * Reads `{resource}`, `{resource}/{id}`, `{resource}/{id}/{method}`, `{resource}/{method}` for POST, and `_/{action}`.
 *
 * No method of a record answers to POST, so a POST there names a method that needs no record: `POST contacts/import`.
 *
 * @param verb HEAD is to be given as GET
 * @param path the part after `PROXY_PREFIX`, without query
 * @throws Failure ROUTE_NOT_FOUND for any other path, INVALID_FIELD for one that is not percent-encoded
 */
export function parseProxyPath(verb: string, path: string): ProxyPath {
  const [resource = '', second, method, ...more] = path.split('/').map(decodeSegment)
  if (resource === '' || second === '' || method === '' || more.length > 0)
    throw new Failure(
      'ROUTE_NOT_FOUND',
      'calls are at /proxy/{resource}, /{resource}/{id}, /{resource}/{id}/{method} and POST /{resource}/{method}',
    )
  if (second === undefined) return byVerb(METHODS_OF_RESOURCE, verb, resource, undefined)
  if (resource === NO_ID) return actionAddress(verb, second, method)
  const id = second === NO_ID ? undefined : second
  if (method !== undefined) return { kind: 'target', target: namedTarget(resource, method), id }
  if (verb !== 'POST' || id === undefined) return byVerb(METHODS_OF_RECORD, verb, resource, id)
  const otherVerbs = Object.keys(METHODS_OF_RECORD)
  return { kind: 'target', target: namedTarget(resource, second), id: undefined, otherVerbs }
}

/** Verbs that a path below `PROXY_PREFIX` takes, by its form alone. */
export function verbsOfProxyPath(path: string): readonly string[] {
  const [resource, second, method] = path.split('/')
  if (second === undefined) return Object.keys(METHODS_OF_RESOURCE)
  if (resource === NO_ID) return ['POST']
  return method === undefined && second === NO_ID ? Object.keys(METHODS_OF_RECORD) : PROXY_VERBS
}

function byVerb(
  methods: Readonly<Record<string, string>>,
  verb: string,
  resource: string,
  id: string | undefined,
): ProxyPath {
  const method = methods[verb]
  return method === undefined
    ? { kind: 'other_verb', allow: Object.keys(methods) }
    : { kind: 'target', target: namedTarget(resource, method), id }
}

function actionAddress(verb: string, action: string, rest: string | undefined): ProxyPath {
  if (rest !== undefined) throw new Failure('ROUTE_NOT_FOUND', 'named actions are at /proxy/_/{action}')
  return verb === 'POST'
    ? { kind: 'target', target: { kind: 'action', action }, id: undefined }
    : { kind: 'other_verb', allow: ['POST'] }
}

/** @throws Failure INVALID_FIELD when the segment is not percent-encoded text */
export function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return segment
  const text = percentDecode(segment)
  if (text === undefined)
    throw invalidFields([{ field: 'path', description: 'is not valid percent-encoding', rule: 'percent_encoding' }])
  const [unstorable] = findUnstorableText(text, 'path')
  if (unstorable !== undefined) throw invalidFields([{ ...unstorable, field: 'path' }])
  return text
}

function percentDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
