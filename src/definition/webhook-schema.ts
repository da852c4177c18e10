import { z } from 'zod'
import { expressionText, nameText, signatureSchema } from '../formats/index.ts'

/** How inbound webhooks of the third party are handled; evaluated by the webhooks room, data here. */
export const webhookSchema = z.strictObject({
  payload_transform: expressionText(['body', 'headers', 'query'])
    .optional()
    .describe('JSONata over {body, headers, query}; the result is the new payload.'),
  handle_verification: expressionText()
    .optional()
    .describe('JSONata that returns {type: verify | payload | meta, verification_response?, update_context?}.'),
  signature_verification: signatureSchema.optional(),
  events: expressionText().optional().describe('JSONata that maps one accepted payload to record events.'),
  context_lookup: z
    .strictObject({
      value: expressionText().describe('JSONata over the payload.'),
      field: nameText().describe("Key of the accounts' context that must equal the value."),
    })
    .optional()
    .describe('How the receiving accounts of an environment-level address are found.'),
})
