import type { DescMessage, Message } from '@bufbuild/protobuf'
import { IntegratedAccountService } from '../../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { LinkTokenService } from '../../../../gen/patchbay/v1/link_token_service_pb.ts'
import { SyncJobCronTriggerService } from '../../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { type Failure, invalidFields, notFound, type Violation } from '../../../foundation/base/index.ts'
import type { Database } from '../../../foundation/database/index.ts'
import { findAccountOwner } from '../../../platform/accounts/index.ts'
import { findInstalledName } from '../../../platform/integrations/index.ts'
import { getLinkSession, type LinkDependencies } from '../../../platform/links/index.ts'
import type { TokenLimits } from '../../../platform/tenancy/index.ts'
import { getRun } from '../../../sync/runs/index.ts'
import { getTrigger } from '../../../sync/schedules/index.ts'
import type { Principal } from '../caller.ts'
import { effectsOf } from '../effects.ts'
import type { Operation } from '../operation.ts'

/** What the limits of tokens are checked with. */
export interface TokenLimitsDeps {
  readonly database: Pick<Database, 'pool'>
  readonly links: LinkDependencies
}

/** A caller with limits, in the environment of its token. */
interface LimitedCaller {
  readonly environmentId: string
  readonly limits: TokenLimits
}

/** What a field of a request says about the accounts that the call concerns. */
interface Subject {
  readonly tenantId?: string | undefined
  readonly integrations?: readonly string[] | undefined
  readonly accountId?: string | undefined
}

/** Reads what a field names. @returns undefined when there is none: the operation itself says so */
type Reader<Deps = TokenLimitsDeps> = (deps: Deps, caller: LimitedCaller, value: string) => Promise<Subject | undefined>

/**
 * Keeps a token with limits to its accounts: fails for an account outside of them as for an unknown one.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function assertAccountWithinLimits(
  deps: Pick<TokenLimitsDeps, 'database'>,
  caller: Principal,
  id: string,
): Promise<void> {
  const limited = limitedCaller(caller)
  if (limited === undefined) return
  const subject = await readAccount(deps, limited, id)
  if (subject === undefined || !isWithin(limited.limits, subject)) throw notFound('integrated_account', id)
}

/**
 * Keeps a token with limits to its accounts in an operation of the contract: each field of its request that names an account, or
 * what belongs to one, has to name one within the limits; and an operation that could concern others has to name one. Direct
 * calls are left to `assertAccountWithinLimits`, since routes that are no operations make them too.
 *
 * @throws Failure RESOURCE_NOT_FOUND for what is outside, INVALID_FIELD where a field has to be given
 */
export async function assertRequestWithinLimits(
  deps: TokenLimitsDeps,
  { input, method }: Operation,
  message: Message,
  caller: Principal,
): Promise<void> {
  const limited = limitedCaller(caller)
  if (limited === undefined || effectsOf(method).callsDirectly) return
  const fields = readersOf(input, method.parent.typeName)
  if (fields.length === 0) return
  const { limits } = limited
  let [isTenantKnown, isIntegrationKnown, isAccountKnown] = [false, false, false]
  for (const { name, noun, read, readFrom } of fields) {
    const value = readFrom(message)
    if (value === undefined) continue
    const subject = typeof value === 'string' ? await read(deps, limited, value) : { integrations: value }
    if (subject === undefined || !isWithin(limits, subject)) throw outside(name, noun, String(value))
    isTenantKnown ||= subject.tenantId !== undefined
    isIntegrationKnown ||= subject.integrations !== undefined
    isAccountKnown ||= subject.accountId !== undefined
  }
  const names = fields.map(({ name }) => name)
  const missing: Violation[] = []
  if (limits.tenantIds.length > 0 && !isTenantKnown)
    missing.push(required(names, ['tenant_id', 'integrated_account_id', 'id'], limits.tenantIds))
  if (limits.integrations.length > 0 && !isIntegrationKnown)
    missing.push(
      required(
        names,
        ['integration_name', 'integrations', 'environment_integration_id', 'integrated_account_id'],
        limits.integrations,
      ),
    )
  if (limits.integratedAccountId !== null && !isAccountKnown)
    missing.push(required(names, ['integrated_account_id', 'id'], [limits.integratedAccountId]))
  if (missing.length > 0) throw invalidFields(missing)
}

function limitedCaller({ environmentId, limits }: Principal): LimitedCaller | undefined {
  return limits === undefined || environmentId === undefined ? undefined : { environmentId, limits }
}

function isWithin({ tenantIds, integrations, integratedAccountId }: TokenLimits, subject: Subject): boolean {
  const allows = (allowed: readonly string[], given: string) => allowed.length === 0 || allowed.includes(given)
  return (
    (subject.tenantId === undefined || allows(tenantIds, subject.tenantId)) &&
    (subject.integrations ?? []).every((name) => allows(integrations, name)) &&
    (subject.accountId === undefined || integratedAccountId === null || subject.accountId === integratedAccountId)
  )
}

function outside(field: string, noun: string | undefined, value: string): Failure {
  if (noun !== undefined) return notFound(noun, value)
  return invalidFields([{ field, description: 'is outside the limits of the token', rule: 'token.limits' }])
}

function required(names: readonly string[], wanted: readonly string[], allowed: readonly string[]): Violation {
  const field = wanted.find((name) => names.includes(name)) ?? wanted[0] ?? ''
  const description = `is required: the token is limited to ${allowed.slice(0, 5).join(', ')}`
  return { field, description, rule: 'token.limits' }
}

const readAccount: Reader<Pick<TokenLimitsDeps, 'database'>> = async ({ database }, { environmentId }, id) => {
  const owner = await findAccountOwner(database.pool, { environmentId, id })
  return owner && { tenantId: owner.tenantId, integrations: [owner.integrationName], accountId: id.toLowerCase() }
}
const readTrigger: Reader = async (deps, caller, id) =>
  await readAccount(deps, caller, (await getTrigger(deps.database.pool, caller.environmentId, id)).integratedAccountId)
const readRun: Reader = async (deps, caller, id) =>
  await readAccount(deps, caller, (await getRun(deps.database.pool, caller.environmentId, id)).integratedAccountId)
const readInstallation: Reader = async ({ database }, { environmentId }, id) => {
  const name = await findInstalledName(database.pool, environmentId, id)
  return name === undefined ? undefined : { integrations: [name] }
}
/** A link is of no integration until the customer has chosen one. */
const readLink: Reader = async (deps, { environmentId }, id) => {
  const { session } = await getLinkSession(deps.links, { environmentId }, id)
  return {
    tenantId: session.tenantId,
    integrations: session.integrationName === null ? [] : [session.integrationName],
    accountId: session.integratedAccountId ?? undefined,
  }
}

/** The `id` of a request, by its service. */
const OF_SERVICE: Readonly<Record<string, readonly [noun: string, read: Reader]>> = {
  [IntegratedAccountService.typeName]: ['integrated_account', readAccount],
  [SyncJobCronTriggerService.typeName]: ['sync_job_cron_trigger', readTrigger],
  [SyncJobRunService.typeName]: ['sync_job_run', readRun],
  [LinkTokenService.typeName]: ['link_token', readLink],
}

/** Other fields, by name. */
const BY_NAME: Readonly<Record<string, readonly [noun: string | undefined, read: Reader]>> = {
  integrated_account_id: ['integrated_account', readAccount],
  trigger_id: ['sync_job_cron_trigger', readTrigger],
  environment_integration_id: ['environment_integration', readInstallation],
  tenant_id: [undefined, async (_deps, _caller, tenantId) => ({ tenantId })],
  integration_name: [undefined, async (_deps, _caller, name) => ({ integrations: [name] })],
  integrations: [undefined, async (_deps, _caller, name) => ({ integrations: [name] })],
}

interface LimitedField {
  readonly name: string
  readonly noun: string | undefined
  readonly read: Reader
  /** Undefined when it is not given. */
  readonly readFrom: (message: Message) => string | readonly string[] | undefined
}

function readersOf(input: DescMessage, service: string): readonly LimitedField[] {
  return input.fields.flatMap((field): readonly LimitedField[] => {
    const [noun, read] = (field.name === 'id' ? OF_SERVICE[service] : BY_NAME[field.name]) ?? []
    if (read === undefined) return []
    const { name, localName, oneof } = field
    const readFrom = (message: Message) => {
      const members = message as unknown as Record<string, unknown>
      if (oneof === undefined) return given(members[localName])
      const chosen = members[oneof.localName] as { readonly case?: string; readonly value?: unknown }
      return chosen.case === localName ? given(chosen.value) : undefined
    }
    return [{ name, noun, read, readFrom }]
  })
}

function given(value: unknown): string | readonly string[] | undefined {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value
  return typeof value === 'string' && value !== '' ? value : undefined
}
