import { findNear, suggest } from '../../foundation/base/index.ts'
import type { HttpRoute } from './http/routes.ts'
import type { Operation } from './operation.ts'
import type { PathPattern } from './rest/router.ts'

/** `, did you mean /sync-job/{id}?` for a path that leads nowhere, else nothing. */
export type SuggestPath = (path: string) => string

/** Suggests among the paths of RPCs, of REST and of the routes beside the contract. The cost is bounded for any path. */
export function createPathSuggester(
  operations: ReadonlyMap<string, Operation>,
  patterns: readonly PathPattern[],
  routes: readonly HttpRoute[],
): SuggestPath {
  const services = Map.groupBy(
    [...operations.keys()].map((path) => path.slice(1).split('/')),
    ([service = '']) => service,
  )
  const others = routes.map(({ path }) => path)
  const literals = [...patterns, ...others.map(literalPattern)]
  return (path) => {
    const segments = path.slice(1).split('/')
    const [service = '', method, more] = segments
    if (method !== undefined && more === undefined && service.includes('.')) return nearRpc(services, service, method)
    return nearPattern(literals, segments)
  }
}

function nearRpc(services: ReadonlyMap<string, readonly string[][]>, service: string, method: string): string {
  const methods = services.get(service)?.map(([, name = '']) => name)
  return methods === undefined ? suggest(service, services.keys()) : suggest(method, methods)
}

/** Of the patterns with as many segments, those with most literals first, the one whose literals are closest. */
function nearPattern(patterns: readonly PathPattern[], segments: readonly string[]): string {
  const sameLength = patterns.filter(({ length }) => length === segments.length)
  const byShape = [...Map.groupBy(sameLength, shapeOf).values()].sort((a, b) => countLiterals(b) - countLiterals(a))
  for (const [first, ...rest] of byShape) {
    if (first === undefined) continue
    const given = segments.filter((_, at) => first[at]?.kind === 'literal').join('/')
    const known = new Map([first, ...rest].map((pattern) => [literalsOf(pattern), pattern]))
    const near = known.get(findNear(given, known.keys()) ?? '')
    if (near !== undefined) return `, did you mean ${textOf(near)}?`
  }
  return ''
}

function literalPattern(path: string): PathPattern {
  return path
    .slice(1)
    .split('/')
    .map((text) => ({ kind: 'literal', text }))
}

function shapeOf(pattern: PathPattern): string {
  return pattern.map(({ kind }) => kind).join(' ')
}

function countLiterals([pattern = []]: readonly PathPattern[]): number {
  return pattern.filter(({ kind }) => kind === 'literal').length
}

function literalsOf(pattern: PathPattern): string {
  return pattern.flatMap((segment) => (segment.kind === 'literal' ? [segment.text] : [])).join('/')
}

function textOf(pattern: PathPattern): string {
  return pattern.map((segment) => `/${segment.kind === 'literal' ? segment.text : `{${segment.field}}`}`).join('')
}
