import type { CallTarget } from '../../proxy/index.ts'

/** Stands where a resource is named, for the actions of a definition. */
const ACTION_RESOURCE = '_'

/** A method of a resource, or with `_` for the resource a named action. */
export function namedTarget(resource: string, method: string): CallTarget {
  return resource === ACTION_RESOURCE ? { kind: 'action', action: method } : { kind: 'method', resource, method }
}

/** Resource and method of a target by which a caller knows it; a path has none. */
export function namesOf(target: CallTarget): Readonly<Record<string, string>> {
  switch (target.kind) {
    case 'method':
      return { resource: target.resource, method: target.method }
    case 'action':
      return { resource: ACTION_RESOURCE, method: target.action }
    case 'path':
    case 'verification':
      return {}
  }
}
