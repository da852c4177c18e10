import {
  createRegistry,
  type DescFile,
  type DescMessage,
  getOption,
  hasOption,
  type JsonObject,
} from '@bufbuild/protobuf'
import { description, readAnnotations } from '../openapi/annotations.ts'
import { createSchemaBook } from '../openapi/schemas.ts'

/** A type of event, as a message describes its payload. */
export interface EventContract {
  /** `integrated_account:active`. */
  readonly type: string
  /** `IntegratedAccountActive`, for names of schemas and generated types. */
  readonly name: string
  /** When it is recorded. */
  readonly description: string
  /** `{$ref}` to the payload. */
  readonly payload: JsonObject
}

/** Every event of the contract with the schemas that they refer to. */
export interface EventsContract {
  readonly events: readonly EventContract[]
  /** The schema of the body of a delivery; `payload` is any object. */
  readonly envelope: JsonObject
  readonly schemas: Readonly<Record<string, JsonObject>>
}

/** The option of a message that names the events whose payload it describes. */
export const EVENT_TYPES_OPTION = 'patchbay.v1.event_types'
const ENVELOPE = 'patchbay.v1.EventEnvelope'

/**
 * The events of the messages that have the option `event_types`.
 *
 * @param at where the document that is written holds schemas, such as `#/$defs`
 */
export function readEventContract(files: readonly DescFile[], at: string): EventsContract {
  const registry = createRegistry(...files)
  const [option, envelope] = [registry.getExtension(EVENT_TYPES_OPTION), registry.getMessage(ENVELOPE)]
  if (option === undefined || envelope === undefined)
    throw new Error(`the contract has no ${EVENT_TYPES_OPTION} or ${ENVELOPE}`)
  const annotations = readAnnotations(files)
  const book = createSchemaBook(annotations, at)
  const eventsOf = (message: DescMessage): EventContract[] => {
    const types = getOption(message, option) as readonly { readonly name: string; readonly description: string }[]
    const payload = book.refTo(message, 'event')
    return types.map((each) => {
      return { type: each.name, name: schemaName(each.name), description: each.description, payload }
    })
  }
  const messages = files.flatMap((file) => file.messages).filter((message) => hasOption(message, option))
  const properties = Object.fromEntries(envelope.fields.map((field) => [field.name, book.ofField(field, 'event')]))
  return {
    events: messages.flatMap(eventsOf),
    envelope: {
      type: 'object',
      description: description(envelope),
      properties,
      required: envelope.fields.filter((field) => annotations.hasBehavior(field, 'REQUIRED')).map(({ name }) => name),
    },
    schemas: book.schemas,
  }
}

function schemaName(type: string): string {
  return type
    .split(/[:_]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** The schema of the body of a delivery with one type of event. */
export function bodySchema(
  { envelope }: EventsContract,
  { type, description: text, payload }: EventContract,
): JsonObject {
  const { properties } = envelope
  return {
    ...envelope,
    description: text,
    properties: { ...(properties as JsonObject), event: { const: type }, payload },
  }
}
