import type { IntegratedAccountRecord, SecretRef } from '../storage/index.ts'

/** Where an account's credentials are: under its environment, JSON texts by field name. */
export function accountSecretRef({
  id,
  environmentId,
}: Pick<IntegratedAccountRecord, 'id' | 'environmentId'>): SecretRef {
  return { ownerId: environmentId, subjectType: 'integrated_account', subjectId: id }
}
