import type { ConnectPlan, Plan } from '../../engine/definitions/index.ts'
import { type Field, findValueProblem, isSecretField } from '../../engine/formats/index.ts'
import { invalidFields, type Violation } from '../../foundation/base/index.ts'
import { canonicalJson, type Json, type JsonObject } from '../../foundation/json/index.ts'

/**
 * Who writes a context. `application`: a token of the environment or of its team. `customer`: the form for a connected account.
 * `action`: an action that a caller runs, from arguments or the third party's answers. `webhook`: a request of the third party.
 * `definition`: the definition itself, by the answer of its token endpoint or the actions that connect an account. `entry`:
 * credentials are entered together with it.
 */
export type ContextWriter = 'application' | 'customer' | 'action' | 'webhook' | 'definition' | 'entry'

/** Writers that may not move an account to another host: its credentials were entered for the one before. */
const BOUND_WRITERS: readonly ContextWriter[] = ['customer', 'action', 'webhook']

/** A change of an account's context. */
interface ContextWrite {
  readonly plan: Plan
  /** How the account is connected; absent where the definition no longer has it. */
  readonly connect: ConnectPlan | undefined
  /** Values by key; null removes one. */
  readonly context: JsonObject
  /** The context before; `{}` for a new account. */
  readonly before: JsonObject
  readonly writer: ContextWriter
}

/**
 * Holds the rules of the definition's fields on every write of a context, and binds credentials to the host they were entered for: a
 * key that decides a host without a limit stays as it is, unless the application or the definition changes it, or credentials
 * are entered with it.
 *
 * @throws Failure INVALID_FIELD with every finding under `context`
 */
export function assertContextRules(write: ContextWrite): void {
  const violations = findContextViolations(write)
  if (violations.length > 0) throw invalidFields(violations)
}

/** The keys of a change that break no rule. */
export function withoutViolations(write: ContextWrite): JsonObject {
  const broken = new Set(findContextViolations(write).map(({ field }) => field))
  return Object.fromEntries(Object.entries(write.context).filter(([key]) => !broken.has(fieldOf(key))))
}

function findContextViolations({ plan, connect, context, before, writer }: ContextWrite): readonly Violation[] {
  return Object.entries(context).flatMap(([key, value]) => {
    const field = fieldNamed(plan, connect, key)
    const problem =
      field === undefined || value === null
        ? undefined
        : findValueProblem(field, value, connect?.sentInHeaders.has(key) ?? false)
    if (problem !== undefined) return [{ field: fieldOf(key), description: problem.description, rule: problem.rule }]
    const isMoved = plan.openHostNames.has(key) && !isSame(before, key, value)
    return isMoved && BOUND_WRITERS.includes(writer) ? [hostViolation(key)] : []
  })
}

function hostViolation(key: string): Violation {
  const description =
    'decides the host to which the credentials of the account are sent: enter them anew together with it, or let the application change it'
  return { field: fieldOf(key), description, rule: 'context.host' }
}

/** Whether a change moves an account to another host, where its definition does not limit it. */
export function movesHost({ openHostNames }: Plan, before: JsonObject, change: JsonObject): boolean {
  return Object.entries(change).some(([key, value]) => openHostNames.has(key) && !isSame(before, key, value))
}

function isSame(before: JsonObject, key: string, value: Json): boolean {
  return canonicalJson(before[key] ?? null) === canonicalJson(value)
}

/** The field that asks for a value of the context: of the credential, or of a form for connected accounts. */
function fieldNamed(plan: Plan, connect: ConnectPlan | undefined, name: string): Field | undefined {
  const own = connect?.fields.find((field) => field.name === name && !isSecretField(field))
  return own ?? plan.formFields.find((field) => field.name === name && field.pattern !== undefined)
}

function fieldOf(key: string): string {
  return `context.${key}`
}

/** The keys that any rule of a definition is about, however its accounts are connected. */
export function namesWithRules({ credentials, formFields, openHostNames }: Plan): ReadonlySet<string> {
  const fields = credentials.flatMap((connect) => connect.fields)
  return new Set([...[...fields, ...formFields].map(({ name }) => name), ...openHostNames])
}
