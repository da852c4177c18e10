import { invalidFields, mustBeOneOf, suggestOneOf } from '../../../foundation/base/index.ts'
import { readQuery } from '../messages/query-string.ts'
import type { Finding } from '../operation.ts'

/** What the address of a client says. */
export interface ManagementSettings {
  /** Only operations without side effects. */
  readonly isReadOnly: boolean
  readonly mode: 'auto' | 'direct' | 'search'
}

const VALUES = { read_only: ['true', 'false'], mode: ['auto', 'direct', 'search'] } as const

/** The parameters of the address. */
export const MANAGEMENT_PARAMETERS = Object.keys(VALUES)

/**
 * Reads the query of the address. Writing is asked for there and not in a header: every client can set an address, not all of
 * them set headers of their own, and who looks at the configuration of a client sees it.
 *
 * @throws Failure INVALID_FIELD
 */
export function readManagementSettings(query: string): ManagementSettings {
  const findings: Finding[] = []
  const given = readQuery(query, findings)
  for (const [name, value] of given) {
    const allowed: readonly string[] | undefined = Object.hasOwn(VALUES, name)
      ? VALUES[name as keyof typeof VALUES]
      : undefined
    const field = name.slice(0, 200)
    if (allowed === undefined)
      findings.push({
        field,
        description: `is not a parameter of this address${suggestOneOf(name, MANAGEMENT_PARAMETERS)}`,
        rule: 'unknown_parameter',
      })
    else if (!allowed.includes(value)) findings.push({ field, description: mustBeOneOf(value, allowed), rule: 'in' })
  }
  if (findings.length > 0) throw invalidFields(findings.slice(0, 20))
  const settings = new Map(given)
  const mode = VALUES.mode.find((each) => each === settings.get('mode')) ?? 'auto'
  return { isReadOnly: settings.get('read_only') !== 'false', mode }
}
