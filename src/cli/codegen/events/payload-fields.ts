import {
  createRegistry,
  type DescField,
  type DescFile,
  type DescMessage,
  hasOption,
  ScalarType,
} from '@bufbuild/protobuf'
import { EVENT_TYPES_OPTION } from './event-contract.ts'

/** Messages that JSON has in a form of its own. */
const WELL_KNOWN: Readonly<Record<string, string>> = {
  'google.protobuf.Timestamp': 'time',
  'google.protobuf.Struct': 'object',
  'google.protobuf.Value': 'json',
}

/**
 * The fields of every payload of an event, as a TypeScript module of constants: by the name of the message its fields with their
 * kinds. A kind is that of a JSON value, `time`, or the name of another message of the module; `[]` marks a list.
 */
export function payloadFieldsModule(files: readonly DescFile[]): string {
  const option = createRegistry(...files).getExtension(EVENT_TYPES_OPTION)
  if (option === undefined) throw new Error(`the contract has no ${EVENT_TYPES_OPTION}`)
  const payloads = files.flatMap((file) => file.messages).filter((message) => hasOption(message, option))
  const tables = [...withNested(payloads)].map((message) => {
    const fields = message.fields.map((field) => `    ${field.name}: '${kindOf(field)}',\n`)
    return `  ${message.name}: {\n${fields.join('')}  },\n`
  })
  return `/** The fields of the payloads of events, and of the messages in them. Generated from the contract: \`npm run generate\`. */
export const PAYLOAD_FIELDS = {\n${tables.join('')}} as const\n`
}

function withNested(messages: readonly DescMessage[], found: Set<DescMessage> = new Set()): ReadonlySet<DescMessage> {
  for (const message of messages) {
    if (found.has(message) || WELL_KNOWN[message.typeName] !== undefined) continue
    found.add(message)
    withNested(
      message.fields.flatMap((field) => field.message ?? []),
      found,
    )
  }
  return found
}

function kindOf(field: DescField): string {
  if (field.fieldKind === 'map') return 'object'
  const one =
    field.message === undefined ? scalarKind(field) : (WELL_KNOWN[field.message.typeName] ?? field.message.name)
  return field.fieldKind === 'list' ? `${one}[]` : one
}

function scalarKind({ scalar }: DescField): string {
  if (scalar === undefined || scalar === ScalarType.STRING || scalar === ScalarType.BYTES) return 'string'
  return scalar === ScalarType.BOOL ? 'boolean' : 'number'
}
