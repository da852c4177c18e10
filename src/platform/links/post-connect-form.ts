import { FORM_ACTION, type FormFieldPlan, labelKeyOf, type Plan } from '../../engine/definitions/index.ts'
import { collectFields, type FieldsSource, type FormField, listFormFields } from '../../engine/formats/index.ts'
import { Failure, type Violation } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { type IntegratedAccount, updateIntegratedAccount } from '../accounts/account.ts'
import { appendAccountEvent } from '../accounts/account-events.ts'
import type { AccountDependencies } from '../accounts/dependencies.ts'
import { listDueFields } from '../accounts/due-fields.ts'
import { loadAccountForDryRun } from '../accounts/load-account.ts'
import { cleanLabel } from './form-option.ts'

/** Names an account. */
export interface FormAccountRef {
  readonly environmentId: string
  readonly id: string
}

/** The form that a definition asks to fill in once an account is connected (`post_connect_user_form`). */
export interface PostConnectForm {
  readonly integratedAccountId: string
  /** Name of the integration. */
  readonly integrationName: string
  /** In the order in which they are shown; empty when the definition asks for nothing. */
  readonly fields: readonly FormField[]
  /** Present values by name, as they are submitted: of selects with remote options `{value, label}`, or a list of them. */
  readonly values: JsonObject
}

type ReadDependencies = Pick<
  AccountDependencies,
  'database' | 'reader' | 'secrets' | 'definitions' | 'evaluator' | 'contextValues'
>

/**
 * The form of an account, in any status; no third party is asked.
 *
 * @param supplied values that the application supplied; their fields are marked hidden
 * @throws Failure RESOURCE_NOT_FOUND, DEFINITION_INVALID, SECRET_UNREADABLE, EXPRESSION_FAILED
 */
export async function getPostConnectForm(
  deps: ReadDependencies,
  { environmentId, id }: FormAccountRef,
  supplied: JsonObject = {},
): Promise<PostConnectForm> {
  const { resolved } = await loadAccountForDryRun(deps, environmentId, id)
  const fields = await listDueFields(deps, resolved)
  const { context } = resolved.access
  const values = fields.flatMap((field) => {
    const value = Object.hasOwn(context, field.name) ? context[field.name] : undefined
    return value === undefined ? [] : [[field.name, withLabels(field, value, context)] as const]
  })
  return {
    integratedAccountId: id,
    integrationName: resolved.integrationName,
    fields: listFormFields(fields, supplied),
    values: Object.fromEntries(values),
  }
}

/**
 * Whether a definition asks the customer of an active account for anything that the application has not supplied: the choices that
 * the account waited for are made, now or before a reconnection. Conditions are not evaluated.
 */
export function hasSettings(
  { actions, choicesBeforeActive }: Pick<Plan, 'actions' | 'choicesBeforeActive'>,
  supplied: JsonObject,
): boolean {
  const fields = actions.get(FORM_ACTION)?.steps.flatMap((step) => (step.type === 'form' ? step.fields : [])) ?? []
  const others = fields.filter((field) => !choicesBeforeActive.includes(field))
  return listFormFields(others, supplied).some(({ isHidden }) => !isHidden)
}

/** A stored value of a select with remote options as `{value, label}`; any other value as it is. */
function withLabels(field: FormFieldPlan, value: Json, context: JsonObject): Json {
  if (field.remote === undefined) return value
  const stored = context[labelKeyOf(field)] ?? null
  const labels: readonly Json[] = Array.isArray(stored) ? stored : [stored]
  const labelled = (id: Json, label: Json | undefined): Json => ({ value: id, label: label ?? id })
  return Array.isArray(value) ? value.map((id: Json, index) => labelled(id, labels[index])) : labelled(value, labels[0])
}

/** Values of a form that may be stored, or why they may not. */
export type CheckedForm =
  | { readonly kind: 'invalid'; readonly violations: readonly Violation[] }
  /** `context`: keys of the account's context; null removes one. */
  | { readonly kind: 'valid'; readonly context: JsonObject }

/**
 * Checks the values of a form; nothing is stored, no third party is asked.
 *
 * @param values by field name, as `collectFields` takes them; of selects with remote options the id, or `{value, label}`, and
 * lists of these. The label is stored beside the id, under `<name>_label`, of a multi_select under `<name>_labels`
 * @param path prefix of the reported fields
 * @throws Failure as `getPostConnectForm` does
 */
export async function checkPostConnectForm(
  deps: ReadDependencies,
  { environmentId, id }: FormAccountRef,
  values: JsonObject,
  { path, ...source }: FieldsSource & { readonly path: string },
): Promise<CheckedForm> {
  const { resolved } = await loadAccountForDryRun(deps, environmentId, id)
  const fields = await listDueFields(deps, resolved)
  const collected = collectFields(fields, withoutLabels(fields, values), path, source)
  if (collected.kind === 'invalid') return collected
  if (Object.keys(collected.secrets).length > 0)
    throw new Failure('DEFINITION_INVALID', `${FORM_ACTION} asks for a secret, which no context can hold`)
  const entries = fields.flatMap((field) => contextEntries(field, collected.visible, values))
  return { kind: 'valid', context: Object.fromEntries(entries) }
}

/** The values of a form with the id of each choice instead of `{value, label}`. */
export function withoutLabels(fields: readonly FormFieldPlan[], values: JsonObject): JsonObject {
  const remote = new Set(fields.filter((field) => field.remote !== undefined).map(({ name }) => name))
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, remote.has(name) ? idsOf(value) : value]),
  )
}

function idsOf(given: Json): Json {
  if (Array.isArray(given)) return given.map(idOf)
  return idOf(given)
}

function idOf(given: Json): Json {
  return isJsonObject(given) && Object.hasOwn(given, 'value') ? (given.value ?? null) : given
}

/** The key of a field and that of its label; null where the field is empty or not asked for. */
function contextEntries(field: FormFieldPlan, collected: JsonObject, given: JsonObject): (readonly [string, Json])[] {
  const { name } = field
  const value = Object.hasOwn(collected, name) ? (collected[name] ?? null) : null
  if (field.remote === undefined) return [[name, value]]
  const labels = labelsOf(given[name] ?? null)
  const labelOf = (id: Json) => labels.get(String(id)) ?? String(id)
  const label = Array.isArray(value) ? value.map(labelOf) : value === null ? null : labelOf(value)
  return [
    [name, value],
    [labelKeyOf(field), label],
  ]
}

/** Labels by id; a label that was not given is missing. */
function labelsOf(given: Json): ReadonlyMap<string, string> {
  const items: readonly Json[] = Array.isArray(given) ? given : [given]
  const entries = items.flatMap((item): [string, string][] => {
    if (!isJsonObject(item) || typeof item.label !== 'string') return []
    const label = cleanLabel(item.label)
    return label === '' ? [] : [[String(item.value), label]]
  })
  return new Map(entries)
}

/**
 * Stores checked values in the account's context, with the event `integrated_account:post_connect_form_submitted`. Repeated with
 * the same values it changes nothing but the account's version.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, CONTEXT_KEY_RESERVED
 */
export async function storePostConnectForm(
  deps: Pick<AccountDependencies, 'secrets' | 'definitions' | 'integrations' | 'contextValues'>,
  tx: Tx,
  { environmentId, id }: FormAccountRef,
  { context, version }: { readonly context: JsonObject; readonly version?: number | undefined },
): Promise<IntegratedAccount> {
  const account = await updateIntegratedAccount(deps, tx, { environmentId, kind: 'link' }, { id, context, version })
  await appendAccountEvent(tx, { environmentId, id }, 'post_connect_form_submitted')
  return account
}
