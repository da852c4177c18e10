import type { JsonObject } from '@bufbuild/protobuf'
import { bodySchema, type EventsContract } from './event-contract.ts'

/**
 * The JSON Schema of the body of a delivery: one of the definitions `…Event`, one for each type. Definitions have the names
 * that generated types should have. Fields are added over time, so further ones are valid.
 */
export function eventsSchema(contract: EventsContract): JsonObject {
  const bodies = contract.events.map((event) => [`${event.name}Event`, bodySchema(contract, event)] as const)
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:patchbay:events:v1',
    title: 'PatchbayEvent',
    description: 'The body of a delivery to a webhook.',
    oneOf: bodies.map(([name]) => ({ $ref: `#/$defs/${name}` })),
    $defs: { ...Object.fromEntries(bodies), ...contract.schemas },
  }
}
