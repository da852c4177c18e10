import { type DescEnum, type DescField, type DescMessage, getOption, ScalarType } from '@bufbuild/protobuf'
import { field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'

/** What a value of the field, or one item of a list or map, must be: `must be true or false`. */
export function expectedType(field: DescField): string {
  if (field.fieldKind === 'message') return `must be ${messageNoun(field.message)}`
  if (field.fieldKind === 'enum') return `must be ${enumNoun(field.enum)}`
  if (field.fieldKind === 'scalar') return `must be ${boundedNoun(field) ?? scalarNoun(field.scalar)}`
  if (field.fieldKind === 'list') return `must be a list, each item ${itemNoun(field)}`
  return `must be an object, each value ${itemNoun(field)}`
}

/** An integer within the bounds of its rules (`buf.validate`), where the contract gives both or the lower one. */
function boundedNoun(field: DescField): string | undefined {
  const { type } = getOption(field, fieldRules)
  if (type.case !== 'int32') return undefined
  const { greaterThan, lessThan } = type.value
  if (greaterThan.case !== 'gte') return undefined
  const max = lessThan.case === 'lte' ? lessThan.value : INT32_MAX
  return `an integer from ${greaterThan.value} to ${max}`
}

const INT32_MAX = 2 ** 31 - 1

function itemNoun(field: DescField & { fieldKind: 'list' | 'map' }): string {
  if (field.message !== undefined) return messageNoun(field.message)
  if (field.enum !== undefined) return enumNoun(field.enum)
  return scalarNoun(field.scalar)
}

function enumNoun(desc: DescEnum): string {
  return `one of ${desc.values.map(({ name }) => name).join(', ')}`
}

/** Messages that stand for one scalar in JSON. */
const WRAPPER = /^google\.protobuf\.(?:Bool|String|Bytes|Double|Float|U?Int(?:32|64))Value$/

function messageNoun(desc: DescMessage): string {
  if (WRAPPER.test(desc.typeName)) return scalarNoun(desc.fields[0]?.scalar)
  switch (desc.typeName) {
    case 'google.protobuf.Timestamp':
      return 'an RFC 3339 time such as 2026-01-31T08:00:00Z'
    case 'google.protobuf.Duration':
      return 'a duration in seconds such as "1.5s"'
    case 'google.protobuf.FieldMask':
      return 'field names separated by commas'
    case 'google.protobuf.ListValue':
      return 'a list'
    case 'google.protobuf.Value':
      return 'a JSON value'
    default:
      return 'a JSON object'
  }
}

function scalarNoun(scalar: ScalarType | undefined): string {
  switch (scalar) {
    case ScalarType.BOOL:
      return 'true or false'
    case ScalarType.STRING:
      return 'a string'
    case ScalarType.BYTES:
      return 'a string in base64'
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return 'a number'
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return 'an integer from 0 to 4294967295'
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return 'an integer from -2147483648 to 2147483647'
    default:
      return 'an integer of 64 bits'
  }
}
