import type { Violation } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { resolvedSchema } from './config-schema.ts'
import { toViolations } from './findings.ts'
import { listFields } from './schema-walk.ts'

/** An address without TLS; of this machine it is no risk. */
const CLEAR_TEXT = /^http:\/\/(?!(?:localhost|127(?:\.\d+){3}|\[::1\])(?:[:/?#]|$))/i

/** Addresses to which credentials would be sent in clear text. A definition with warnings is valid. @param path prefix: `config` */
export function findClearTextAddresses(config: JsonObject, path: string): Violation[] {
  const findings = listFields(resolvedSchema, config).flatMap(({ role, value, path: at }) => {
    const isAddress = role.kind === 'url' || at.at(-2) === 'allowed_origins'
    if (!isAddress || typeof value !== 'string' || !CLEAR_TEXT.test(value)) return []
    const description = 'begins with http: credentials are sent in clear text to this address; use https'
    return [{ at, description, rule: 'address.clear_text' }]
  })
  return toViolations(findings, path)
}
