import type { Database } from '../../src/foundation/database/index.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { SeededTenant } from './seeded-tenant.ts'

/** Copies the tenant's account so many times. */
export async function addAccounts(
  { pool }: Database,
  { environmentId, integratedAccountId }: Pick<SeededTenant, 'environmentId' | 'integratedAccountId'>,
  count: number,
): Promise<void> {
  await execute(
    pool,
    `insert into integrated_account (environment_id, id, environment_integration_id, tenant_id, authentication_method,
       credential, context, status, is_sandbox, region, object_store_context_fields)
     select environment_id, gen_random_uuid(), environment_integration_id, tenant_id, authentication_method, credential, context,
       'active', is_sandbox, region, object_store_context_fields
     from integrated_account, generate_series(1, :count::int) where environment_id = :environmentId and id = :integratedAccountId`,
    { environmentId, integratedAccountId, count },
  )
}

/** How many statements are sent over the database meanwhile. */
export async function statementsOf({ pool }: Database, work: () => Promise<unknown>): Promise<number> {
  let statements = 0
  const count = () => statements++
  pool.on('query', count)
  await work()
  pool.off('query', count)
  return statements
}
