import { FORM_ACTION, type FormFieldPlan } from '../../engine/definitions/index.ts'
import { environmentRoots } from '../../engine/expressions/index.ts'
import { isTruthy } from '../../engine/formats/index.ts'
import type { AccountDependencies } from './dependencies.ts'
import type { ResolvedAccount } from './resolved-account.ts'

/**
 * The fields of all steps of `post_connect_user_form` whose `run_if` holds for the account. What they depend on in other steps has its
 * value already.
 *
 * @throws Failure EXPRESSION_FAILED
 */
export async function listDueFields(
  { evaluator }: Pick<AccountDependencies, 'evaluator'>,
  { plan, access }: Pick<ResolvedAccount, 'plan' | 'access'>,
): Promise<readonly FormFieldPlan[]> {
  const fields: FormFieldPlan[] = []
  for (const step of plan.actions.get(FORM_ACTION)?.steps ?? []) {
    if (step.type !== 'form') continue
    if (await isDue(evaluator, step.runIf, access)) fields.push(...step.fields)
  }
  const names = new Set(fields.map(({ name }) => name))
  return fields.map((field) => ({ ...field, dependsOn: field.dependsOn.filter((name) => names.has(name)) }))
}

/**
 * The required fields that have no value, of the steps with `before_active` whose `run_if` holds: choices of the customer that the
 * account waits for.
 *
 * @throws Failure EXPRESSION_FAILED
 */
export async function listOpenChoices(
  deps: Pick<AccountDependencies, 'evaluator'>,
  { plan, access }: Pick<ResolvedAccount, 'plan' | 'access'>,
): Promise<readonly FormFieldPlan[]> {
  const open = plan.choicesBeforeActive.filter(({ name }) => (access.context[name] ?? null) === null)
  if (open.length === 0) return []
  const due = new Set((await listDueFields(deps, { plan, access })).map(({ name }) => name))
  return open.filter(({ name }) => due.has(name))
}

async function isDue(
  evaluator: AccountDependencies['evaluator'],
  runIf: string | undefined,
  { context, environmentVariables, environmentId }: ResolvedAccount['access'],
): Promise<boolean> {
  if (runIf === undefined) return true
  const call = { context, args: {}, query: {}, body: null, id: null }
  const roots = { ...call, ...environmentRoots(runIf, environmentVariables) }
  return isTruthy(await evaluator.evaluate(runIf, roots, environmentId === undefined ? {} : { owner: environmentId }))
}
