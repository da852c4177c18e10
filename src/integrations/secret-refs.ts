import type { EnvironmentIntegrationRecord, IntegrationRecord, SecretRef } from '../storage/index.ts'

/** Where an integration's own secrets are: under its team, whoever installs it. */
export function integrationSecretRef({ id, teamId }: Pick<IntegrationRecord, 'id' | 'teamId'>): SecretRef {
  return { ownerId: teamId, subjectType: 'integration', subjectId: id }
}

/** Where the secrets of an installation's override are: under its environment. */
export function overrideSecretRef({
  id,
  environmentId,
}: Pick<EnvironmentIntegrationRecord, 'id' | 'environmentId'>): SecretRef {
  return { ownerId: environmentId, subjectType: 'environment_integration', subjectId: id }
}
