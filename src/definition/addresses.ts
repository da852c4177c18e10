import type { JsonObject } from '../base/index.ts'
import { findTemplateProblem, listPlaceholderPaths } from '../expression/index.ts'
import { resolvedSchema } from './config-schema.ts'
import { writePath } from './json-path.ts'
import { listFields } from './schema-walk.ts'

/** An address written out in a config. */
export interface Address {
  /** JSON path of the setting. */
  readonly path: string
  readonly url: string
}

/**
 * The addresses that calls would go to, as far as they can be judged before a call: those whose text has no placeholder.
 *
 * The config need not be valid; what is not a text is skipped.
 *
 * @param prefix of the reported paths, e.g. `override`
 */
export function listAddresses(config: JsonObject, prefix: string): Address[] {
  return listFields(resolvedSchema, config).flatMap(({ role, value, path }) =>
    role.kind === 'url' && typeof value === 'string' && isLiteralAddress(value)
      ? [{ path: writePath(prefix, path), url: value }]
      : [],
  )
}

function isLiteralAddress(text: string): boolean {
  return findTemplateProblem(text) === undefined && listPlaceholderPaths(text).length === 0
}
