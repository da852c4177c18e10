import type { Tx } from '../../foundation/database/index.ts'
import { appendEvents } from '../outbox/append-events.ts'
import { payloadOf } from '../outbox/payload.ts'
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
