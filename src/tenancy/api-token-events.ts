import type { Tx } from '../database/index.ts'
import { appendEvents, payloadOf } from '../events/index.ts'
import type { ApiTokenRecord } from './sql/api-tokens.ts'

/**
 * Records that a token was created or deleted, in the token's environment. A team's token belongs to no environment and has
 * no event.
 */
export async function recordApiTokenEvent(
  tx: Tx,
  type: 'api_token:created' | 'api_token:deleted',
  token: ApiTokenRecord,
): Promise<void> {
  const { id, environmentId } = token
  if (environmentId === null) return
  await appendEvents(tx, [{ environmentId, type, subjectId: id, payload: tokenPayload(token) }])
}

const tokenPayload = payloadOf('ApiTokenEventPayload')
